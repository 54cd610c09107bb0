import { Long, MongoClient, type MongoServerError, UUID } from 'mongodb'
import { expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { openDouble } from './open-double.ts'
import type { ReplicaSetOptions } from './replica-set.ts'

const { uri } = testDatabase()
const majority = { writeConcern: { w: 'majority' } } as const
const unconfirmed = { writeConcern: { w: 1 } } as const

interface Counter {
  _id: number
  count: number
}

async function start(options?: ReplicaSetOptions) {
  const { set, name, client } = await openDouble(uri, options)
  const counters = client.db(name).collection<Counter>('counters')
  await counters.insertOne({ _id: 1, count: 0 })
  const increment = (options = {}) => counters.updateOne({ _id: 1 }, { $inc: { count: 1 } }, options)
  const count = async () => (await counters.findOne({ _id: 1 }))?.count
  return { set, name, client, counters, increment, count }
}

/** Opens a client of one member, which sends all commands there. */
function clientOf(host: string) {
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, { retryWrites: false })
  atFileEnd(() => client.close())
  return client
}

it.each(['before', 'after'] as const)(
  'a write whose connection closes %s its execution takes effect once',
  async (when) => {
    const { set, increment, count } = await start()
    set.faults.inNext({ when, matches: (command) => command === 'update' })
    await increment()
    expect(await count()).toBe(1)
    expect(set.faults.happened).toBe(1)
  },
)

it('a write that the driver may not repeat fails, and takes effect once', async () => {
  const { set, counters, count } = await start()
  set.faults.inNext({ when: 'after', matches: (command) => command === 'update' })
  await expect(counters.updateMany({}, { $inc: { count: 1 } })).rejects.toThrow()
  expect(await count()).toBe(1)
})

it('a repeat of a write with the number of an earlier write is refused, and so is a retryable write to many', async () => {
  const { name, client, count } = await start()
  const lsid = { id: new UUID().toBinary() }
  const write = (txnNumber: number, multi = false) =>
    client.db(name).command({
      update: 'counters',
      updates: [{ q: { _id: 1 }, u: { $inc: { count: 1 } }, multi }],
      lsid,
      txnNumber: Long.fromNumber(txnNumber),
    })
  const [one, two] = [await write(2), await write(2)]
  expect(two.nModified).toBe(one.nModified)
  expect(await count()).toBe(1)
  await expect(write(1)).rejects.toMatchObject({ codeName: 'TransactionTooOld' })
  await expect(write(3, true)).rejects.toMatchObject({ codeName: 'InvalidOptions' })
})

it.each([{ closes: false }, { closes: true }])(
  'writes go on at the next primary (former one closes: $closes)',
  async (how) => {
    const { set, name, increment, count } = await start()
    const former = set.primary()
    const running = Array.from({ length: 20 }, () => increment())
    await set.stepDown(how)
    await Promise.all(running)
    expect(await count()).toBe(20)
    expect(set.primary()).not.toBe(former)
    const counters = clientOf(former.host).db(name).collection('counters')
    const refused = counters.insertOne({ count: 1 }).catch((error: unknown) => error)
    expect(await refused).toMatchObject({ codeName: 'NotWritablePrimary' } satisfies Partial<MongoServerError>)
  },
)

it('an isolated primary confirms nothing by majority, and rolls back what it wrote', async () => {
  const { set, name, increment, count } = await start()
  await increment(majority)
  const former = set.primary()
  const atFormer = clientOf(former.host).db(name).collection<Counter>('counters')
  await set.isolatePrimary()
  await atFormer.updateOne({ _id: 1 }, { $inc: { count: 100 } }, unconfirmed)
  expect((await atFormer.findOne({ _id: 1 }))?.count).toBe(101)
  expect((await atFormer.findOne({ _id: 1 }, { readConcern: 'majority' }))?.count).toBe(1)
  const confirmed = atFormer.updateOne({ _id: 1 }, { $inc: { count: 100 } }, majority).catch((error: unknown) => error)
  await increment(majority)
  expect(await count()).toBe(2)
  expect(await confirmed).toBeInstanceOf(Error)
  await set.rejoin()
  expect(await count()).toBe(2)
  expect((await atFormer.findOne({ _id: 1 }))?.count).toBe(2)
})

it('writes that only a stopped primary had are rolled back, and the collection keeps its UUID', async () => {
  const { set, name, client, increment, count } = await start()
  const uuid = async () => (await client.db(name).listCollections({ name: 'counters' }).toArray())[0] as never
  const before: { info: { uuid: unknown } } = await uuid()
  await set.holdBack(set.secondaries())
  await increment(unconfirmed)
  expect(await count()).toBe(1)
  const former = set.primary()
  await set.stop(former)
  // A new client may notice only after half a second that its primary has stopped.
  await expect.poll(count).toBe(0)
  await set.start(former)
  await increment(majority)
  expect(await count()).toBe(1)
  expect((await uuid()) as typeof before).toMatchObject({ info: { uuid: before.info.uuid } })
})

it('a majority write waits for late secondaries', async () => {
  const { set, increment, count } = await start()
  await set.holdBack(set.secondaries())
  let isConfirmed = false
  const write = increment(majority).then(() => {
    isConfirmed = true
  })
  await until('the write', async () => (await count()) === 1)
  expect(isConfirmed).toBe(false)
  await set.catchUp()
  await write
})

it('with an arbiter, one stopped member holds up every majority write', async () => {
  const { set, increment, count } = await start({ hasArbiter: true })
  await increment(majority)
  const [other] = set.secondaries()
  await set.stop(other!)
  const write = increment(majority)
  await until('the write', async () => (await count()) === 2)
  expect(await Promise.race([write, new Promise((resolve) => setTimeout(resolve, 300, 'waits'))])).toBe('waits')
  await set.start(other!)
  await write
})

it('an index build waits for a stopped member, unless a majority is enough', async () => {
  const { set, counters } = await start()
  const [other] = set.secondaries()
  await set.stop(other!)
  await counters.createIndex({ count: 1 }, { commitQuorum: 'majority' })
  const built = counters.createIndex({ count: -1 })
  expect(await Promise.race([built, new Promise((resolve) => setTimeout(resolve, 300, 'waits'))])).toBe('waits')
  await set.start(other!)
  expect(await built).toBe('count_-1')
})
