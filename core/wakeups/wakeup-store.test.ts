import { randomUUID } from 'node:crypto'
import { type Collection, MongoClient, ObjectId } from 'mongodb'
import { afterAll, expect, it, onTestFinished, vi } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { type CaughtUp, createWakeupStore, type WakeupDocument } from './wakeup-store.ts'

const { uri, name } = testDatabase({ isNew: true })
const client = new MongoClient(uri, { monitorCommands: true })
afterAll(() => client.close())

const readerOf = (signal = new AbortController().signal) => ({
  from: 'own',
  kids: [],
  signal,
  now: Date.now,
})

const isCaughtUp = (each: WakeupDocument | CaughtUp): each is CaughtUp => 'asOf' in each

/** Creates a fake replica set in which the cursor's server may cease to be the primary. */
function newReplicaSet() {
  const set = { onCursor: [] as ObjectId[], isFollowed: true, reads: 0 }
  let taken = 0
  const cursor = {
    closed: false,
    bufferedCount: () => 0,
    close: async () => {},
    async tryNext() {
      await new Promise(setImmediate)
      set.reads += 1
      const _id = set.onCursor[taken]
      if (_id === undefined) return null
      taken += 1
      return { _id, from: 'own', heads: [], changed: [], at: new Date() }
    },
  }
  const wakeups = {
    async updateMany({ _id }: { _id: ObjectId }) {
      if (set.isFollowed) set.onCursor.push(_id)
    },
    insertOne: async () => void set.onCursor.push(new ObjectId()),
    find: () => cursor,
  }
  return { set, store: createWakeupStore({ wakeups: wakeups as unknown as Collection<WakeupDocument> }) }
}

it('a reader whose cursor does not return its beats does not report that it has caught up', async () => {
  const { set, store } = newReplicaSet()
  let time = 0
  const asOf: number[] = []
  const read = async () => {
    for await (const each of store.follow({ ...readerOf(), monotonic: () => time })) {
      if (isCaughtUp(each)) asOf.push(each.asOf)
      time += 100
      // Simulate that another server becomes the primary.
      if (time > 2_000) set.isFollowed = false
    }
  }
  await expect(read()).rejects.toThrow('behind the primary')
  expect(Math.max(...asOf)).toBeGreaterThan(1_500)
  expect(Math.max(...asOf)).toBeLessThan(2_500)
  expect(asOf.filter((each) => each === asOf.at(-1)).length).toBeGreaterThan(10)
})

it('a reader without peers reads once a second from a server that does not wait, and own writes at once', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { set, store } = newReplicaSet()
  const stopping = new AbortController()
  let hasPeers = false
  const changed: string[][] = []
  const read = async () => {
    const reader = { ...readerOf(stopping.signal), isNeeded: () => false, hasPeers: () => hasPeers }
    for await (const each of store.follow(reader)) if (!isCaughtUp(each)) changed.push(each.changed)
  }
  const reading = read()
  const readsIn = async (ms: number) => {
    const before = set.reads
    await vi.advanceTimersByTimeAsync(ms)
    return set.reads - before
  }
  await readsIn(1_000)
  expect(await readsIn(10_000)).toBeLessThan(15)
  const before = changed.length
  await store.publish({ from: 'own', heads: [], changed: ['id'], awaited: true, at: new Date() })
  await vi.advanceTimersByTimeAsync(5)
  expect(changed).toHaveLength(before + 1)
  hasPeers = true
  expect(await readsIn(10_000)).toBeGreaterThan(500)
  hasPeers = false
  await readsIn(1_000)
  stopping.abort()
  await reading
})

it('the driver does not retry beats', async () => {
  await (await openTestDatabase({ uri, name })).close()
  const transactions: unknown[] = []
  client.on('commandStarted', ({ command }) => {
    if (command.update === 'wakeups') transactions.push(command.txnNumber)
  })
  const wakeups = client.db(name).collection<WakeupDocument>('wakeups')
  const stopping = new AbortController()
  for await (const each of createWakeupStore({ wakeups }).follow(readerOf(stopping.signal)))
    if (isCaughtUp(each)) stopping.abort()
  expect(transactions.length).toBeGreaterThanOrEqual(2)
  expect(new Set(transactions)).toEqual(new Set([undefined]))
})

async function newStore() {
  const options = { capped: true, size: 1_000_000 }
  const wakeups = await client.db(name).createCollection<WakeupDocument>(randomUUID(), options)
  const publish = (id: string, at: number) =>
    wakeups.insertOne({ from: 'another', heads: [], changed: [id], at: new Date(at) })
  /** Publishes `id-1`, `id-2` and so on, at the times 1, 2 and so on. */
  const publishMany = (count: number) =>
    wakeups.insertMany(
      Array.from({ length: count }, (_, index) => ({
        from: 'another',
        heads: [],
        changed: [`id-${index + 1}`],
        at: new Date(index + 1),
      })),
    )
  const ids = async () => (await wakeups.find().toArray()).flatMap(({ changed }) => changed)
  return { wakeups, store: createWakeupStore({ wakeups }), publish, publishMany, ids }
}

it('old wake-ups are removed, and the newest one as soon as another one follows it', async () => {
  const { wakeups, store, publishMany, ids } = await newStore()
  await publishMany(1_200)
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
  const reader = store.follow(readerOf())[Symbol.asyncIterator]()
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
