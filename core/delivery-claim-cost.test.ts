import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DeliveryDocument } from './store/deliveries.ts'
import { testDeliveries } from './test-deliveries.ts'

/** What has ended, and what waits for a destination that is full. */
const finished = 20_000
const backlog = 5_000

const test = testDeliveries()
let client: MongoClient
let scenes: Awaited<ReturnType<typeof test.newScene>>[]

beforeAll(async () => {
  await test.open({ count: 1 })
  client = await new MongoClient(test.uri).connect()
  scenes = await Promise.all(Array.from({ length: 10 }, () => test.newScene()))
})
afterAll(() => client.close())

function documents(
  count: number,
  name: string,
  more: (index: number) => Partial<DeliveryDocument>,
): DeliveryDocument[] {
  const at = new Date(test.now() - 60_000)
  return Array.from({ length: count }, (_, index) => ({
    _id: `dlv_${name}${index}`,
    workspaceId: 'ws_other',
    leadId: `lead_${name}${index}`,
    subscriptionId: scenes[index % 10]!.subscriptionId,
    status: 'accepted' as const,
    attempts: [{ attemptId: `att_${name}${index}`, correlationId: 'c', manual: false, createdAt: at, updatedAt: at }],
    operations: [{ key: `${name} ${index}`, inputHash: '', attemptId: `att_${name}${index}` }],
    createdAt: at,
    updatedAt: at,
    ...more(index),
  }))
}

/** The engine's own account of every command of some work: what it examined. */
async function examined(work: () => Promise<unknown>) {
  const db = client.db(test.name)
  await db.setProfilingLevel('all')
  await work()
  await db.setProfilingLevel('off')
  const entries = await db
    .collection('system.profile')
    .find({ ns: { $in: [`${test.name}.deliveries`, `${test.name}.leadSubscriptions`] }, op: { $ne: 'getmore' } })
    .toArray()
  await db.dropCollection('system.profile')
  const sum = (field: string) => entries.reduce((total, entry) => total + (Number(entry[field]) || 0), 0)
  return { calls: entries.length, keys: sum('keysExamined'), documents: sum('docsExamined') }
}

describe('the cost of a claim', () => {
  it('grows neither with what has ended, nor with the backlog of a full destination, and is next to nothing when idle', async () => {
    const { deliveries } = test.cores[0]!.database.collections
    const worker = await test.worker()
    const full = scenes[0]!.subscriptionId
    const more = { limit: 50, perDestination: 10, underWay: { [full]: 10 } }
    const sendSome = async () => {
      for (const scene of scenes.slice(1)) await Promise.all([scene.send(), scene.send()])
    }
    const claimSome = async () => expect(await worker.claim(more)).toHaveLength(18)

    await sendSome()
    const empty = await examined(claimSome)
    await test.clear()

    await deliveries.insertMany(documents(finished, 'f', () => ({})))
    expect(await examined(() => worker.claim(more))).toMatchObject({ documents: 0 })
    const idle = await examined(() => worker.claim(more))
    expect(idle).toMatchObject({ calls: 1, keys: 0 })
    await sendSome()
    const afterMany = await examined(claimSome)
    expect(afterMany).toEqual(empty)

    const due = (index: number) => ({
      subscriptionId: full,
      status: 'pending' as const,
      dueAt: new Date(test.now() - 60_000 - index),
    })
    await deliveries.insertMany(documents(backlog, 'b', due))
    await sendSome()
    const besideBacklog = await examined(claimSome)
    // The look ahead, and one key of each destination.
    expect(besideBacklog.keys).toBeLessThan(empty.keys + 256 + 50)
    expect(besideBacklog.documents).toBe(empty.documents)
    const onlyBacklog = await examined(() => worker.claim(more))
    expect(onlyBacklog).toMatchObject({ documents: 0 })
    expect(onlyBacklog.keys).toBeLessThan(50)
  })

  it('is five calls for any number of deliveries, and of their results three', async () => {
    await test.clear()
    await Promise.all(scenes.flatMap((scene) => Array.from({ length: 10 }, () => scene.send())))
    const worker = await test.worker()
    let claimed: Awaited<ReturnType<typeof worker.claim>> = []
    const claiming = await examined(async () => {
      claimed = await worker.claim()
    })
    expect(claimed).toHaveLength(100)
    expect(claiming.calls).toBeLessThanOrEqual(5)
    expect(claiming.documents).toBeLessThanOrEqual(10 + 3 * 100)
    const results = claimed.map(({ deliveryId, attemptId, claimId }) => ({
      deliveryId,
      attemptId,
      claimId,
      outcome: { case: 'response' as const, value: { status: 200 } },
    }))
    const { documents: read } = await examined(() => worker.calls.recordAttempts({ results }))
    expect(read).toBeLessThanOrEqual(10 + 2 * 100)
  })
})
