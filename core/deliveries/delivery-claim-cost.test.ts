import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isLong, itLong } from '../../test/support/is-long.ts'
import { collectionsOf } from '../database/collections.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import { addResults, type Room, roomOf } from '../test/claims.ts'
import { bareCore } from '../test/core-with.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { type Cost, openMeasuredClient } from '../test/query-cost.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { takeDeliveries } from './claims.ts'
import { liveSubscriptionsOf } from './live-subscriptions.ts'
import { subscriptionsPaused, subscriptionsWaiting } from './pauses.ts'
import { type DeliveryQueue, deliveryQueueOf } from './queue.ts'
import type { ClaimedDelivery } from './webhook-requests.ts'

/**
 * `finished` is the number of ended deliveries. `backlog` is the number of due deliveries of a
 * destination whose limit of concurrent deliveries is reached.
 */
const finished = isLong ? 20_000 : 1_000
const backlog = isLong ? 5_000 : 500

const test = testDeliveries({ count: 1, clears: false })
let client: Awaited<ReturnType<typeof openMeasuredClient>>
let scenes: Awaited<ReturnType<typeof test.newScene>>[]

beforeAll(async () => {
  client = await openMeasuredClient(test.uri, test.name)
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
    eventType: 'lead.ready-for-delivery' as const,
    leadId: `lead_${name}${index}`,
    subscriptionId: scenes[index % 10]!.subscriptionId,
    destination: scenes[index % 10]!.subscriptionId,
    status: 'accepted' as const,
    attempts: [{ attemptId: `att_${name}${index}`, correlationId: 'c', manual: false, createdAt: at, updatedAt: at }],
    operations: [{ key: `${name} ${index}`, inputHash: '', attemptId: `att_${name}${index}` }],
    createdAt: at,
    updatedAt: at,
    ...more(index),
  }))
}

async function insert(all: DeliveryDocument[]) {
  const deliveries = client.db.collection<DeliveryDocument>('deliveries')
  for (let start = 0; start < all.length; start += 1000) {
    await deliveries.insertMany(all.slice(start, start + 1000), { ordered: false })
  }
}

/** Returns a core whose commands the client counts. It shares the wake-ups of another core. */
function measuredCore() {
  const [core] = test.cores
  const measured = bareCore({ ...core, db: collectionsOf(client.db), random: () => 0.5, now: test.now })
  wakeupsOf.set(measured, wakeupsOf(core!))
  return measured
}

/** Returns a claim function that also counts the examined keys and documents of its queries. */
function countedClaims() {
  let cost: Cost
  const core = measuredCore()
  const queue = deliveryQueueOf(core)
  /** Runs the query, then runs `explain` on it before a later step changes the data. */
  const counted =
    <A extends unknown[], R>(method: (...given: A) => Promise<R>) =>
    async (...given: A) => {
      const { answer, sent } = await client.commandsOf(() => method(...given))
      await client.add(cost, sent)
      return answer
    }
  deliveryQueueOf.set(core, {
    ...queue,
    upcoming: counted(queue.upcoming),
    dueDestinations: counted(queue.dueDestinations),
    candidates: counted(queue.candidates),
    take: counted(queue.take),
  } as DeliveryQueue)
  const { signal } = new AbortController()
  return async (room: Room): Promise<{ claimed: ClaimedDelivery[]; cost: Cost }> => {
    cost = { calls: 0, keys: 0, documents: 0 }
    const { claimed } = await takeDeliveries(core, {
      workerId: 'w',
      room: roomOf({ limit: 50, perDestination: 10, ...room }),
      signal,
    })
    return { claimed, cost }
  }
}

describe('the database cost', () => {
  itLong(
    'the database cost of a claim does not grow with thousands of ended deliveries or with a long backlog',
    async () => {
      const { deliveries } = test.cores[0]!.database.collections
      const claimWithCost = countedClaims()
      const full = scenes[0]!.subscriptionId
      const request = { underWay: { [full]: 10 } }
      const sendSome = async () => {
        for (const scene of scenes.slice(1)) await Promise.all([scene.send(), scene.send()])
      }
      const claimSome = async () => {
        const { claimed, cost } = await claimWithCost(request)
        expect(claimed).toHaveLength(18)
        return cost
      }

      await sendSome()
      const few = await claimSome()
      await test.clear()

      await insert(documents(finished, 'f', () => ({})))
      expect((await claimWithCost(request)).cost).toEqual({ calls: 1, keys: 0, documents: 0 })
      await sendSome()
      const amongMany = await claimSome()
      expect(amongMany).toMatchObject({ calls: few.calls, documents: few.documents })
      expect(amongMany.keys).toBeLessThanOrEqual(few.keys + 10)

      await deliveries.updateMany({ status: 'sending' }, { $set: { status: 'accepted' }, $unset: { dueAt: '' } })
      const due = (index: number) => ({
        subscriptionId: full,
        destination: full,
        status: 'pending' as const,
        dueAt: new Date(test.now() - 60_000 - index),
      })
      await insert(documents(backlog, 'b', due))
      await sendSome()
      const beside = await claimSome()
      // A claim examines up to 256 due entries, and at most two keys for each of ten destinations.
      expect(beside.keys).toBeLessThanOrEqual(few.keys + 256 + 20)
      expect(beside.documents).toBe(few.documents)
      const only = await claimWithCost(request)
      expect(only.claimed).toEqual([])
      expect(only.cost.keys).toBeLessThanOrEqual(256 + 20)
      expect(only.cost.documents).toBe(0)
    },
  )

  it('the database cost of reconciliation is at most 30 index keys and no documents in each query, despite thousands of ended deliveries', async () => {
    const { collections } = test.cores[0]!.database
    await insert(documents(finished + 1, 'r', () => ({})))
    expect((await collections.deliveries.countDocuments({ status: 'accepted' })) > finished).toBe(true)
    await insert(documents(500, 'h', () => ({ status: 'held' as const })))
    await scenes[1]!.send()
    const core = measuredCore()
    for (const ask of [subscriptionsWaiting, subscriptionsPaused]) {
      const { answer, sent } = await client.commandsOf(() => ask(core))
      expect(answer.length).toBeGreaterThan(0)
      const cost: Cost = { calls: 0, keys: 0, documents: 0 }
      await client.add(cost, sent)
      expect(cost.keys).toBeLessThanOrEqual(30)
      expect(cost.documents).toBe(0)
    }
  })

  it('a claim makes four database calls, or five if it is the first to find a backlog; recording its results makes one call', async () => {
    await client.db.collection('deliveries').deleteMany({})
    await Promise.all(scenes.flatMap((scene) => Array.from({ length: 30 }, () => scene.send())))
    const claimWithCost = countedClaims()
    const first = await claimWithCost({ limit: 100, perDestination: 20 })
    expect(first.claimed).toHaveLength(100)
    expect(first.cost.calls).toBe(5)
    const next = await claimWithCost({ limit: 100, perDestination: 20 })
    expect(next.claimed).toHaveLength(100)
    expect(next.cost.calls).toBe(4)
    expect(next.cost.documents).toBeLessThanOrEqual(10 + 10 * 20 + 100)

    const core = measuredCore()
    liveSubscriptionsOf.set(core, liveSubscriptionsOf(test.cores[0]!))
    const { answer: counted, sent } = await client.commandsOf(() =>
      addResults(
        core,
        next.claimed.map(({ attemptNumber, destination, ...ids }) => ({
          ...ids,
          durationMs: 5,
          claimed: { attemptNumber, subscriptionId: destination },
          facts: { status: 200 },
        })),
      ),
    )
    expect(counted).toEqual(Array(100).fill(true))
    expect(sent.map(({ update }) => update)).toEqual(['deliveries'])
  })
})
