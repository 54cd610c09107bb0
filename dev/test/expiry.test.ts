import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Db, MongoClient } from 'mongodb'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { attachEngine, type Engine } from '../engine/engine.ts'
import { createExpiry } from '../engine/expiry.ts'

const now = new Date('2030-01-01T00:00:00Z')
const before = (seconds: number) => new Date(now.getTime() - seconds * 1000)

/** Uses an engine of its own, because a sweep covers every database. */
describe('sweeps of the embedded engine', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'expiry-test-'))
  let engine: Engine
  let client: MongoClient
  let db: Db
  let databases = 0

  const sweep = async () => {
    const expiry = createExpiry(
      client,
      () => now,
      (error) => expect.fail(`${error}`),
    )
    const deleted = await expiry.sweep()
    await expiry.stop()
    return deleted
  }

  const left = async (collection: string) => {
    const found = await db.collection(collection).find().toArray()
    return found.map(({ name }) => name as string).sort()
  }

  beforeAll(async () => {
    engine = await attachEngine({ dataDir, logger: pino({ level: 'silent' }) })
    client = new MongoClient(engine.uri)
  })

  beforeEach(() => {
    databases += 1
    db = client.db(`expiry-${databases}`)
  })

  afterAll(async () => {
    await client.close()
    await engine.stop()
    rmSync(dataDir, { recursive: true })
  })

  it('a sweep deletes only documents that are older than the TTL index allows', async () => {
    await db.collection('notes').createIndex({ createdAt: 1 }, { expireAfterSeconds: 60 })
    await db.collection('notes').insertMany([
      { name: 'old', createdAt: before(3600) },
      { name: 'just old enough', createdAt: before(60) },
      { name: 'young', createdAt: before(59) },
      { name: 'to come', createdAt: before(-60) },
    ])
    expect(await sweep()).toBe(2)
    expect(await left('notes')).toEqual(['to come', 'young'])
  })

  it('a sweep deletes a document at the indexed date if the index has a TTL of 0 seconds', async () => {
    await db.collection('notes').createIndex({ 'until.at': -1 }, { expireAfterSeconds: 0 })
    await db.collection('notes').insertMany([
      { name: 'over', until: { at: now } },
      { name: 'not yet', until: { at: before(-1) } },
    ])
    await sweep()
    expect(await left('notes')).toEqual(['not yet'])
  })

  it('a sweep keeps documents without a date in the indexed field', async () => {
    await db.collection('notes').createIndex({ at: 1 }, { expireAfterSeconds: 0 })
    await db
      .collection('notes')
      .insertMany([
        { name: 'missing' },
        { name: 'null', at: null },
        { name: 'number', at: 1 },
        { name: 'text', at: '2000-01-01T00:00:00Z' },
        { name: 'dates', at: [before(1), before(-1)] },
      ])
    expect(await sweep()).toBe(1)
    expect(await left('notes')).toEqual(['missing', 'null', 'number', 'text'])
  })

  it('a sweep deletes only expired documents that match the filter of a partial TTL index', async () => {
    await db
      .collection('notes')
      .createIndex({ at: 1 }, { expireAfterSeconds: 0, partialFilterExpression: { state: 'done' } })
    await db.collection('notes').insertMany([
      { name: 'done', at: before(1), state: 'done' },
      { name: 'open', at: before(1), state: 'open' },
    ])
    await sweep()
    expect(await left('notes')).toEqual(['open'])
  })

  it('a sweep ignores capped collections and indexes without a TTL', async () => {
    await db.createCollection('capped', { capped: true, size: 4096 })
    await db.collection('capped').createIndex({ at: 1 }, { expireAfterSeconds: 0 })
    await db.collection('capped').insertOne({ name: 'capped', at: before(1) })
    await db.collection('ordinary').createIndex({ at: 1 })
    await db.collection('ordinary').insertOne({ name: 'ordinary', at: before(1) })
    expect(await sweep()).toBe(0)
  })

  it('a sweep covers every database', async () => {
    const others = [client.db('expiry-other-1'), client.db('expiry-other-2')]
    for (const other of others) {
      await other.collection('notes').createIndex({ at: 1 }, { expireAfterSeconds: 0 })
      await other.collection('notes').insertOne({ at: before(1) })
    }
    expect(await sweep()).toBe(2)
  })

  it('a sweep runs every 30 seconds, even after a failed sweep', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const failing = Object.assign(Object.create(client), {
      db: () => {
        throw new Error('out of order')
      },
    })
    const errors: unknown[] = []
    const expiry = createExpiry(
      failing,
      () => now,
      (error) => errors.push(error),
    )
    try {
      await vi.advanceTimersByTimeAsync(29_999)
      expect(errors).toHaveLength(0)
      await vi.advanceTimersByTimeAsync(1)
      expect(errors).toHaveLength(1)
      await vi.advanceTimersByTimeAsync(30_000)
      expect(errors).toHaveLength(2)
    } finally {
      vi.useRealTimers()
      await expiry.stop()
    }
  })
})
