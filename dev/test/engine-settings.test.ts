import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { attachEngine, type Engine } from '../engine/engine.ts'

const dataDir = mkdtempSync(join(realpathSync(tmpdir()), 'engine-settings-'))
let engine: Engine
let client: MongoClient

beforeAll(async () => {
  engine = await attachEngine({ dataDir, logger: pino({ level: 'silent' }) })
  client = new MongoClient(engine.uri)
})
afterAll(async () => {
  await client.close()
  await engine.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

it('answers a query with two plans that both find nothing for a long time', async () => {
  const entries = client.db('plans').collection<{ _id: string; owner: string; at: number }>('entries')
  const newestFirst = { at: -1, _id: -1 } as const
  await entries.createIndex({ owner: 1, ...newestFirst }, { name: 'by_time' })
  await entries.insertMany(
    Array.from({ length: 15_000 }, (_, index) => ({ _id: `other-${index}`, owner: 'one', at: 1 })),
    { writeConcern: { w: 1, j: false } },
  )
  const rest = { $or: [{ at: { $lt: 1 } }, { _id: { $lt: 'z' } }] }
  const found = entries.find({ owner: 'one', $and: [{ _id: /wanted/ }, { at: { $lte: 1 } }, rest] })
  expect(await found.sort(newestFirst).hint('by_time').toArray()).toEqual([])
})

itLong('closes the files of dropped collections', async () => {
  const admin = client.db('admin')
  const openFiles = async () =>
    Number((await admin.command({ serverStatus: 1 })).wiredTiger.connection['files currently open'])
  const before = await openFiles()
  const db = client.db('dropped')
  for (let index = 0; index < 200; index += 1) await db.createCollection(`collection-${index}`)
  await db.dropDatabase()
  await expect.poll(openFiles, { timeout: 100_000, interval: 1_000 }).toBeLessThan(Math.max(before, 100) + 100)
})
