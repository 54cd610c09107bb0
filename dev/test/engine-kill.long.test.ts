import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient, type WriteConcernSettings } from 'mongodb'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { durableWriteConcern } from '../../core/database/client-options.ts'
import { isLong } from '../../test/support/is-long.ts'
import { enginePlace } from '../engine/engine-place.ts'
import { nodeForEngine } from '../engine/glibc.ts'
import { type HostedEngine, hostEngine } from '../engine/hosted-engine.ts'

const logger = pino({ level: 'silent' })
const signal = new AbortController().signal
const writers = 8
const rounds = isLong ? 3 : 1

let dataDir = ''
let engine: HostedEngine | undefined

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'durability-test-'))
})

afterEach(async () => {
  await engine?.stop()
  rmSync(dataDir, { recursive: true })
})

const start = async () => {
  engine = await hostEngine({
    place: enginePlace(dataDir),
    command: await nodeForEngine({ logger, signal }),
    logger,
    signal,
  })
  return { pid: engine.pid ?? 0, ended: engine.ended, client: new MongoClient(enginePlace(dataDir).uri) }
}

/**
 * Writes concurrently, kills the engine meanwhile, and returns the ids of writes that were
 * acknowledged but lost.
 */
const lostInRound = async (round: number, writeConcern?: WriteConcernSettings): Promise<number[]> => {
  const before = await start()
  const written = before.client.db('test').collection<{ _id: number }>(`round-${round}`, { writeConcern })
  const acknowledged: number[] = []
  const enough = 150 + round * 37
  const writer = async (first: number) => {
    for (let id = first; ; id += writers) {
      const done = await written.insertOne({ _id: id }).catch(() => undefined)
      if (done === undefined) return
      acknowledged.push(id)
      if (acknowledged.length === enough) process.kill(before.pid, 'SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: writers }, (_, first) => writer(first)))
  await before.ended
  await before.client.close()

  const after = await start()
  const kept = await after.client.db('test').collection<{ _id: number }>(`round-${round}`).distinct('_id')
  await after.client.close()
  await engine?.stop()
  return acknowledged.filter((id) => !kept.includes(id))
}

describe('an acknowledged write', () => {
  it('an acknowledged write survives repeated SIGKILL with the write concern in the address of the engine', async () => {
    for (let round = 0; round < rounds; round += 1) expect(await lostInRound(round), `round ${round}`).toEqual([])
  })

  it('an acknowledged write survives repeated SIGKILL with the write concern that the core uses', async () => {
    const { client } = await start()
    const concern = await durableWriteConcern(client)
    await client.close()
    await engine?.stop()
    for (let round = 0; round < rounds; round += 1)
      expect(await lostInRound(round, concern), `round ${round}`).toEqual([])
  })
})
