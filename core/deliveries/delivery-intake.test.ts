import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { operatorScopes, testDeliveries } from '../test/deliveries.ts'
import type { ClaimRequest } from './delivery-claims.ts'
import { createDeliveryIntake } from './delivery-intake.ts'
import { createDeliveryQueue } from './delivery-queue-store.ts'
import { createDeliveryStore } from './delivery-store.ts'
import { createLeadSubscriptionStore } from './lead-subscription-store.ts'
import { leadContent, newDelivery } from './new-delivery.ts'
import { createReadyRequests } from './webhook-requests.ts'

const test = testDeliveries()
beforeAll(() => test.open())
beforeEach(() => test.clear())

const longWait = { waitMs: 20_000 }

/** Returns a worker that waits on the first core, with the promise of its claimed deliveries. */
async function waitingWorker(more: Parameters<Awaited<ReturnType<typeof test.worker>>['claim']>[0] = {}) {
  const worker = await test.worker()
  const claimed = worker.claim({ ...longWait, onlyNew: true, ...more })
  await test.waitingWorker()
  return { ...worker, claimed }
}

describe('new deliveries', () => {
  it('a new delivery is passed to a waiting worker and leased to it by the same write that inserts the delivery', async () => {
    const { leadId, subscriptionId, workspaceId } = await test.newScene()
    const calls: string[] = []
    const core = test.watchedCore((collection, method) => void calls.push(`${collection}.${method}`))
    const operator = await test.client(core, operatorScopes, workspaceId)
    const waiting = (await test.worker(core)).claim({ ...longWait, onlyNew: true })
    await test.waitingWorker(core)
    const { attempt } = await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'k' })
    const [claimed] = await waiting
    expect(claimed).toMatchObject({ deliveryId: attempt!.deliveryId, attemptNumber: 1, destination: subscriptionId })
    expect(calls.toSorted()).toEqual([
      'deliveries.insertOne',
      'leadSubscriptions.find',
      'leads.find',
      // Checks whether the workspace has suppressions. The result is cached for 400 ms.
      'suppressions.findOne',
    ])
    const kept = await core.database.collections.deliveries.findOne({ _id: claimed!.deliveryId })
    expect(kept).toMatchObject({ status: 'sending', claim: { claimId: claimed!.claimId, workerId: 'worker' } })
    await core.stop()
  })

  it('a new delivery is leased to the waiting worker; another worker takes over the attempt after the lease expires', async () => {
    const { send, attempts } = await test.newScene()
    const dead = await waitingWorker()
    const { deliveryId, attemptId } = await send()
    const [first] = await dead.claimed
    const alive = await test.worker(test.cores[1], 'alive')
    test.advance(4_000)
    expect(await alive.claim()).toEqual([])
    test.advance(2_000)
    const [second] = await alive.claim()
    expect(second).toMatchObject({ deliveryId, attemptId, attemptNumber: 1 })
    expect(await dead.answer(first!, 410)).toBe(false)
    expect(await alive.answer(second!, 200)).toBe(true)
    expect(await attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.ACCEPTED }])
  })

  it('a new delivery is queued if earlier deliveries of a burst have used up the capacity of the waiting worker', async () => {
    const scenes = await Promise.all([test.newScene(), test.newScene()])
    const [full, other] = scenes as [(typeof scenes)[0], (typeof scenes)[0]]
    const worker = await waitingWorker({ limit: 5, perDestination: 3, underWay: { [full.subscriptionId]: 1 } })
    await Promise.all(Array.from({ length: 10 }, () => [full.send(), other.send()]).flat())
    const handed = await worker.claimed
    const left = await worker.claim()
    const of = (claimed: typeof left, { subscriptionId }: { subscriptionId: string }) =>
      claimed.filter(({ destination }) => destination === subscriptionId).length
    expect([of(handed, full), of(handed, other)]).toEqual([2, 3])
    expect([of(left, full), of(left, other)]).toEqual([8, 7])
  })

  it('a new delivery is queued if no waiting worker has free capacity for it', async () => {
    const { send, subscriptionId } = await test.newScene()
    const worker = await waitingWorker({ underWay: { [subscriptionId]: 100 }, waitMs: 300 })
    await send()
    expect(await worker.claimed).toEqual([])
    expect(await worker.claim()).toHaveLength(1)
  })

  it('a new delivery is not passed to a worker again when its request is repeated', async () => {
    const { send } = await test.newScene()
    const first = await waitingWorker()
    const { attemptId } = await send('once')
    expect(await first.claimed).toHaveLength(1)
    const second = await waitingWorker()
    expect((await send('once')).attemptId).toBe(attemptId)
    const next = await send('next')
    expect(await second.claimed).toMatchObject([{ attemptId: next.attemptId }])
  })

  it('a new delivery returns to the queue at once if the waiting worker aborts during the write', async () => {
    const { leadId, subscriptionId, workspaceId } = await test.newScene()
    const leaving = new AbortController()
    const core = test.watchedCore((_, method) => {
      if (method === 'insertOne') leaving.abort()
    })
    const request: ClaimRequest = {
      workerId: 'gone',
      limit: 10,
      perDestination: 10,
      underWay: new Map(),
      onlyNew: true,
      signal: leaving.signal,
      ...longWait,
    }
    const waiting = core.deliveryClaims.claim(request)
    await test.waitingWorker(core)
    const operator = await test.client(core, operatorScopes, workspaceId)
    await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'k' })
    expect(await waiting).toEqual([])
    expect(await (await test.worker()).claim(longWait)).toHaveLength(1)
    await core.stop()
  })

  it('if the write of a new delivery fails, the worker keeps waiting for the next delivery', async () => {
    const { leadId, subscriptionId, workspaceId } = await test.newScene()
    let failures = 1
    const core = test.watchedCore((_, method) => {
      if (method === 'insertOne' && failures-- > 0) throw new Error('away')
    })
    const waiting = (await test.worker(core)).claim({ ...longWait, onlyNew: true })
    await test.waitingWorker(core)
    const operator = await test.client(core, operatorScopes, workspaceId)
    const create = (idempotencyKey: string) =>
      operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey })
    await expect(create('lost')).rejects.toThrow()
    const { attempt } = await create('kept')
    expect(await waiting).toMatchObject([{ attemptId: attempt!.attemptId }])
    await core.stop()
  })

  it("a new delivery is queued if the subscription's secret cannot be decrypted", async () => {
    const { send, subscriptionId } = await test.newScene()
    const { leadSubscriptions } = test.cores[0]!.database.collections
    await leadSubscriptions.updateOne({ _id: subscriptionId }, { $set: { 'secrets.0.sealed': 'k0.AAAA.AAAA' } })
    const worker = await waitingWorker({ waitMs: 300 })
    await send()
    expect(await worker.claimed).toEqual([])
  })

  it('a new delivery of a captured lead is passed to a waiting worker, unless its subscription is disabled', async () => {
    const { operator, subscriptionId } = await test.newScene({ automatic: true })
    const other = await operator.createSubscription({ destinationUrl: 'https://b.example/', automatic: true })
    await test.clear()
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    const worker = await waitingWorker()
    await operator.captureLead({ source: 'test', fields: { name: 'Mia' } })
    expect(await worker.claimed).toMatchObject([{ destination: other.subscriptionId }])
  })

  it('a delivery that was signed with an outdated cached secret does not disable the subscription when its answer is 401', async () => {
    const { operator, leadId, subscriptionId, subscription } = await test.newScene()
    const core = test.cores[0]!
    const { collections } = core.database
    const [remembered] = await createLeadSubscriptionStore(collections).find([subscriptionId])
    const readAt = new Date(test.now())
    test.advance(1_000)
    await operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds: 0 })
    test.advance(1_000)

    const intake = createDeliveryIntake({
      store: createDeliveryStore(collections),
      queue: createDeliveryQueue(collections),
      work: core.deliveryWork,
      requests: createReadyRequests(core),
      announce: () => {},
      logger: core.logger,
      settings: { leaseMs: 5_000 },
      now: test.now,
    })
    const { isTooLarge: _, ...delivery } = newDelivery({
      content: leadContent(await core.leads.find(leadId, undefined), remembered!),
      subscription: remembered!,
      operation: { key: 'k', inputHash: '' },
      at: new Date(test.now()),
      settings: { bodyMaxBytes: 65_536, retentionDays: 1 },
    })
    const worker = await waitingWorker()
    expect(await intake.add(delivery, { subscription: remembered!, readAt })).toBe(true)
    const [claimed] = await worker.claimed
    // The request was signed with the old secret, so a 401 must not disable the subscription.
    expect(await worker.answer(claimed!, 401)).toBe(true)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
  })
})
