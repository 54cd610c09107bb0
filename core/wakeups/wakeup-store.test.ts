import { randomUUID } from 'node:crypto'
import { type Collection, MongoClient, ObjectId } from 'mongodb'
import { afterAll, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { openDatabase } from '../database/database.ts'
import { type CaughtUp, createWakeupStore, type WakeupDocument } from './wakeup-store.ts'

const { uri, name } = testDatabase()
const client = new MongoClient(uri, { monitorCommands: true })
afterAll(() => client.close())

const isCaughtUp = (each: WakeupDocument | CaughtUp): each is CaughtUp => 'asOf' in each

/** Creates a fake replica set in which the cursor's server may cease to be the primary. */
function newReplicaSet() {
  const set = { onCursor: [] as ObjectId[], onPrimary: [] as ObjectId[] }
  let taken = 0
  const cursor = {
    closed: false,
    bufferedCount: () => 0,
    close: async () => {},
    async tryNext() {
      const _id = set.onCursor[taken]
      await new Promise(setImmediate)
      if (_id === undefined) return null
      taken += 1
      return { _id, from: 'another', heads: [], changed: [String(_id)], at: new Date() }
    },
  }
  const newest = { sort: () => newest, limit: () => newest, toArray: async () => [{ _id: set.onPrimary.at(-1) }] }
  const wakeups = {
    writeConcern: { w: 'majority' },
    insertOne: async () => {},
    find: (_: object, options: object) => ('readConcern' in options ? newest : cursor),
  }
  return { set, store: createWakeupStore({ wakeups: wakeups as unknown as Collection<WakeupDocument> }) }
}

it('a reader that misses a wake-up of the new primary does not report that it has caught up', async () => {
  const { set, store } = newReplicaSet()
  const [one, two] = [new ObjectId(), new ObjectId()]
  set.onCursor = [one]
  set.onPrimary = [one]
  let time = 0
  const stopping = new AbortController()
  const asOf: number[] = []
  const received: string[] = []
  for await (const each of store.follow(stopping.signal, () => time)) {
    if (!isCaughtUp(each)) received.push(...each.changed)
    else asOf.push(each.asOf)
    time += 100
    // Simulate that another server becomes the primary.
    if (asOf.length === 3) set.onPrimary = [one, two]
    if (asOf.length > 3 && time > 3_000) set.onCursor = [one, two]
    if (received.length === 2 && asOf.at(-1)! > 3_000) stopping.abort()
  }
  const frozen = asOf.filter((each) => each < 1_000)
  expect(new Set(asOf.filter((each) => each >= 1_000).map((each) => each > 2_000))).toEqual(new Set([true]))
  expect(frozen.length).toBeGreaterThan(10)
})

it('the newest wake-up of a replica set is read with linearizable read concern', async () => {
  await (await openDatabase({ uri, name, timeoutMs: 5000 })).close()
  const concerns: unknown[] = []
  client.on('commandStarted', ({ command }) => {
    if (command.find === 'wakeups' && command.sort) concerns.push(command.readConcern)
  })
  const wakeups = client.db(name, { writeConcern: { w: 'majority' } }).collection<WakeupDocument>('wakeups')
  const stopping = new AbortController()
  const following = (async () => {
    for await (const _ of createWakeupStore({ wakeups }).follow(stopping.signal, () => performance.now()));
  })()
  await expect.poll(() => concerns.length).toBeGreaterThan(0)
  stopping.abort()
  await following.catch(() => {})
  expect(concerns[0]).toEqual({ level: 'linearizable' })
})

async function newStore() {
  const options = { capped: true, size: 1_000_000 }
  const wakeups = await client.db(name).createCollection<WakeupDocument>(randomUUID(), options)
  const publish = (id: string, at: number) =>
    wakeups.insertOne({ from: 'another', heads: [], changed: [id], at: new Date(at) })
  const ids = async () => (await wakeups.find().toArray()).flatMap(({ changed }) => changed)
  return { wakeups, store: createWakeupStore({ wakeups }), publish, ids }
}

it('old wake-ups are removed, and the newest one as soon as another one follows it', async () => {
  const { wakeups, store, publish, ids } = await newStore()
  for (let number = 1; number <= 1_200; number += 1) await publish(`id-${number}`, number)
  const remove = (before: number) => store.removeBefore(new Date(before), new Date(before))
  expect(await remove(1_101)).toBe(true)
  expect(await ids()).toHaveLength(100)
  expect(await remove(2_000)).toBe(false)
  expect(await ids()).toEqual(['id-1200'])
  expect(await remove(2_000)).toBe(true)
  expect(await ids()).toEqual([])
  // Without new wake-ups, later calls write nothing.
  const last = await wakeups.find().toArray()
  expect(await remove(9_000)).toBe(true)
  expect(await wakeups.find().toArray()).toEqual(last)
})

it('a reader that has not read the removed wake-ups ends instead of missing them', async () => {
  const { store, publish } = await newStore()
  const reader = store.follow(new AbortController().signal, () => performance.now())[Symbol.asyncIterator]()
  for (let each = await reader.next(); !('asOf' in each.value); ) each = await reader.next()
  const later = Date.now() + 1_000
  for (const [index, id] of ['first', 'second', 'third'].entries()) await publish(id, later + index)
  await store.removeBefore(new Date(later + 2), new Date())
  const read: string[] = []
  const readRest = async () => {
    for (let each = await reader.next(); !each.done; each = await reader.next())
      if ('changed' in each.value) read.push(...each.value.changed)
  }
  await expect(readRest()).rejects.toThrow(/position/)
  expect(read).toEqual([])
})
