import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { until } from '../../test/support/until.ts'
import { getLead } from '../leads/leads.ts'
import { operatorScopes, testDeliveries } from '../test/deliveries.ts'
import { addDelivery, leadContent, newDelivery } from './intake.ts'
import { findSubscriptions } from './live-subscriptions.ts'

const test = testDeliveries()

type Stream = Awaited<ReturnType<typeof test.stream>>

const received = (stream: Stream, count: number) =>
  until(`${count} deliveries`, () => stream.received().length >= count).then(stream.received)

describe('new deliveries', () => {
  it('a new delivery is sent to a worker with a stream and leased to it by the same write that inserts the delivery', async () => {
    const { leadId, subscriptionId, workspaceId } = await test.newScene()
    const calls: string[] = []
    const core = test.watchedCore((collection, method) => void calls.push(`${collection}.${method}`))
    const operator = await test.client(core, operatorScopes, workspaceId)
    const stream = await test.stream({ core })
    const { attempt } = await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'k' })
    const [claimed] = await received(stream, 1)
    expect(claimed).toMatchObject({ deliveryId: attempt!.deliveryId, attemptNumber: 1, destination: subscriptionId })
    const kept = await test.cores[0]!.database.collections.deliveries.findOne({ _id: claimed!.deliveryId })
    expect(kept).toMatchObject({ status: 'sending', claim: { claimId: claimed!.claimId, workerId: 'worker' } })
    stream.answer([claimed!])
    await until('the answer', () => stream.recorded().some(({ held }) => held))
    // The reads of the queue and the last use of tokens do not belong to one delivery.
    expect(calls.filter((call) => call !== 'deliveries.find' && !call.startsWith('tokens.')).toSorted()).toEqual([
      'deliveries.bulkWrite',
      'deliveries.insertOne',
      // Read for the delivery and for its result, because this core does not follow wake-ups and so
      // does not use its cache.
      'leadSubscriptions.find',
      'leadSubscriptions.find',
      'leads.find',
      // Checks whether the workspace has suppressions. The result is cached for 400 ms.
      'suppressions.findOne',
    ])
    await core.stop()
  })

  it('a new delivery is queued if earlier deliveries have used up the room of the workers, and sent when a result makes room', async () => {
    const [full, other] = [await test.newScene(), await test.newScene()]
    const stream = await test.stream({ limit: 300, perDestination: 3 })
    await Promise.all(Array.from({ length: 5 }, () => [full.send(), other.send()]).flat())
    const first = await received(stream, 6)
    const of = (claimed: typeof first, { subscriptionId }: { subscriptionId: string }) =>
      claimed.filter(({ destination }) => destination === subscriptionId)
    expect([of(first, full).length, of(first, other).length]).toEqual([3, 3])
    // A slow answer makes room for one delivery, a quick answer for more.
    stream.answer(of(first, full).slice(0, 1), 200, 5_000)
    expect(of(await received(stream, 7), full)).toHaveLength(4)
    stream.answer(of(first, other).slice(0, 1), 200, 10)
    expect(of(await received(stream, 9), other)).toHaveLength(5)
    stream.answer(
      stream
        .received()
        .filter(({ destination }) => destination === full.subscriptionId)
        .slice(1),
      200,
      1_000,
    )
    expect(of(await received(stream, 10), full)).toHaveLength(5)
  })

  it('a new delivery to a destination that hangs never uses all room of a worker', async () => {
    const hanging = await Promise.all(Array.from({ length: 6 }, () => test.newScene()))
    const good = await test.newScene()
    const stream = await test.stream({ limit: 20, perDestination: 10 })
    await Promise.all(hanging.flatMap(({ send }) => Array.from({ length: 10 }, () => send())))
    const before = (await received(stream, 6)).length
    expect(before).toBeLessThan(20)
    await good.send()
    await until('the good one', () => stream.received().some(({ destination }) => destination === good.subscriptionId))
  })

  it('a new delivery is not sent to a worker again when its request is repeated', async () => {
    const { send } = await test.newScene()
    const stream = await test.stream({ limit: 1 })
    const { attemptId } = await send('once')
    stream.answer(await received(stream, 1))
    await until('the answer', () => stream.recorded().length === 1)
    expect((await send('once')).attemptId).toBe(attemptId)
    // The repeated request must not use up the only place of the worker.
    const next = await send('next')
    expect((await received(stream, 2)).map((each) => each.attemptId)).toEqual([attemptId, next.attemptId])
  })

  it('a new delivery returns to the queue at once if the stream of the worker ends during the write', async () => {
    const { leadId, subscriptionId, workspaceId } = await test.newScene()
    let leave = () => {}
    const core = test.watchedCore((collection, method) => {
      if (collection === 'deliveries' && method === 'insertOne') leave()
    })
    const stream = await test.stream({ core })
    leave = stream.leave
    const operator = await test.client(core, operatorScopes, workspaceId)
    await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'k' })
    expect(stream.received()).toEqual([])
    expect(await (await test.worker()).claim({ waitMs: 20_000 })).toHaveLength(1)
    await core.stop()
  })

  it('if the write of a new delivery fails, the worker gets the next delivery', async () => {
    const { leadId, subscriptionId, workspaceId } = await test.newScene()
    let failures = 1
    const core = test.watchedCore((collection, method) => {
      if (collection === 'deliveries' && method === 'insertOne' && failures-- > 0) throw new Error('away')
    })
    const stream = await test.stream({ core, limit: 1 })
    const operator = await test.client(core, operatorScopes, workspaceId)
    const create = (idempotencyKey: string) =>
      operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey })
    await expect(create('lost')).rejects.toThrow()
    const { attempt } = await create('kept')
    expect(await received(stream, 1)).toMatchObject([{ attemptId: attempt!.attemptId }])
    await core.stop()
  })

  it("a new delivery is queued if the subscription's secret cannot be decrypted", async () => {
    const { send, subscriptionId, operator } = await test.newScene()
    const { leadSubscriptions } = test.cores[0]!.database.collections
    await leadSubscriptions.updateOne({ _id: subscriptionId }, { $set: { 'secrets.0.sealed': 'k0.AAAA.AAAA' } })
    const stream = await test.stream()
    await send()
    const { deliveries } = await operator.listDeliveries({ statuses: [DeliveryStatus.PENDING] })
    expect(deliveries).toHaveLength(1)
    expect(stream.received()).toEqual([])
  })

  it('a new delivery of a captured lead is sent to a worker, unless its subscription is disabled', async () => {
    const { operator, subscriptionId } = await test.newScene({ automatic: true })
    const other = await operator.createSubscription({ destinationUrl: 'https://b.example/', automatic: true })
    await test.clear()
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    const stream = await test.stream()
    await operator.captureLead({ source: 'test', fields: { name: 'Mia' } })
    expect(await received(stream, 1)).toMatchObject([{ destination: other.subscriptionId }])
  })

  it('a delivery that was signed with an outdated cached secret does not disable the subscription when its answer is 401', async () => {
    const { operator, leadId, subscriptionId, subscription } = await test.newScene()
    const core = test.cores[0]!
    const [remembered] = await findSubscriptions(core, [subscriptionId])
    const readAt = new Date(test.now())
    test.advance(1_000)
    await operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds: 0 })
    test.advance(1_000)

    const delivery = newDelivery(core, {
      content: leadContent(await getLead(core, leadId, undefined), remembered!),
      subscription: remembered!,
      operation: { key: 'k', inputHash: '' },
    })
    const stream = await test.stream()
    expect(await addDelivery(core, delivery, { subscription: remembered!, readAt })).toBe(true)
    const [claimed] = await received(stream, 1)
    // The request was signed with the old secret, so a 401 must not disable the subscription.
    stream.answer([claimed!], 401)
    await until('the answer', () => stream.recorded().some(({ held }) => held))
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
  })
})
