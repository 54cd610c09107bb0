import { beforeEach, describe, expect, it } from 'vitest'
import { SubscriptionPurpose, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { standardSignature } from '../../contract/webhook-headers.ts'
import { itLong } from '../../test/support/is-long.ts'
import { hasFailed } from '../test/cores.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { catchUpFeed, flushFeed } from '../test/feed.ts'

const test = testDeliveries()
beforeEach(async () => {
  await flushFeed(test.cores[0]!)
  await test.clear()
})

const hour = 3_600_000
const destinationUrl = 'https://ops.example/events'
const purpose = SubscriptionPurpose.OPERATIONAL_EVENTS

/** A workspace with a subscription and an operational endpoint. */
async function watched() {
  const scene = await test.newScene()
  const { operator, subscriptionId } = scene
  const endpoint = await operator.createSubscription({ destinationUrl, purpose })
  const worker = await test.worker()
  /** Sends and accepts the waiting events of the endpoint. Returns their bodies. */
  const events = async () => {
    for (const core of test.cores) await flushFeed(core)
    const claimed = await worker.claim()
    const mine = claimed.filter(({ destination }) => destination === endpoint.subscriptionId)
    for (const each of mine) await worker.answer(each, 200)
    return mine.map(({ deliveryId, body, headers }) => {
      const signature = standardSignature(endpoint.secret, deliveryId, Number(headers['webhook-timestamp']), body)
      expect(headers['webhook-signature']).toBe(signature)
      return JSON.parse(Buffer.from(body).toString())
    })
  }
  /** Lets one delivery fail until it is a dead letter. */
  const deadLetter = async () => {
    const { deliveryId } = await scene.send()
    for (let attempt = 1; attempt <= 9; attempt += 1) {
      const [claimed] = (await worker.claim()).filter((each) => each.deliveryId === deliveryId)
      await worker.answer(claimed!, 500)
      test.advance(13 * hour)
    }
    return deliveryId
  }
  const setStatus = (status: SubscriptionStatus, id = subscriptionId) =>
    operator.updateSubscription({ subscriptionId: id, status })
  return { ...scene, endpoint, worker, events, deadLetter, setStatus }
}

describe('the operational endpoint', () => {
  it('the operational endpoint gets a signed event with ids and the reason each time a subscription is disabled', async () => {
    const { worker, send, subscriptionId, events, setStatus } = await watched()
    await send()
    const [claimed] = await worker.claim()
    await worker.answer(claimed!, 410)
    expect(await events()).toEqual([
      {
        eventType: 'subscription.disabled',
        id: expect.stringMatching(/^dlv_/),
        contractVersion: '1.0',
        occurredAt: expect.any(String),
        data: { reference: subscriptionId, subscriptionId, reason: 'gone' },
      },
    ])
    expect(await events()).toEqual([])
    await setStatus(SubscriptionStatus.ENABLED)
    await setStatus(SubscriptionStatus.DISABLED)
    expect(await events()).toMatchObject([{ data: { subscriptionId, reason: 'operator' } }])
  })

  itLong(
    'the operational endpoint gets one event for the first dead letter, and another for the first dead letter after a success',
    async () => {
      const { deadLetter, subscriptionId, events, send, worker } = await watched()
      const deliveryId = await deadLetter()
      const data = { reference: deliveryId, subscriptionId, deliveryId }
      expect(await events()).toMatchObject([{ eventType: 'lead.delivery-failed', data }])
      // Further dead letters cause no event until a delivery succeeds. The update removes the time of
      // the first failure, so that five days of failures do not disable the subscription.
      const subscriptions = test.cores[0]!.database.collections.leadSubscriptions
      await subscriptions.updateOne({ _id: subscriptionId }, { $unset: { failingSince: '' } })
      await deadLetter()
      expect(await events()).toEqual([])
      await send()
      await worker.drain(200)
      const later = await deadLetter()
      expect(await events()).toMatchObject([{ data: { deliveryId: later } }])
    },
  )

  it('events are retried like leads and are held while the endpoint is disabled', async () => {
    const { endpoint, setStatus, worker, events } = await watched()
    await setStatus(SubscriptionStatus.DISABLED)
    await flushFeed(test.cores[0]!)
    const [first] = await worker.claim()
    await worker.answer(first!, 503)
    await setStatus(SubscriptionStatus.DISABLED, endpoint.subscriptionId)
    test.advance(hour)
    expect(await events()).toEqual([])
    await setStatus(SubscriptionStatus.ENABLED, endpoint.subscriptionId)
    test.advance(hour)
    expect(await events()).toMatchObject([{ id: first!.deliveryId, data: { reason: 'operator' } }])
  })

  it('a disabled operational endpoint causes no events, not even to another operational endpoint', async () => {
    const { operator, setStatus, endpoint, worker } = await watched()
    await operator.createSubscription({ destinationUrl, purpose })
    await setStatus(SubscriptionStatus.DISABLED, endpoint.subscriptionId)
    for (const core of test.cores) await flushFeed(core)
    expect(await worker.claim()).toEqual([])
    const { leadSubscriptions, deliveries } = test.cores[0]!.database.collections
    expect(await leadSubscriptions.countDocuments({ 'notices.at': { $exists: true } })).toBe(0)
    expect(await deliveries.countDocuments({})).toBe(0)
  })

  itLong(
    'an event is sent once, even if cores send it at the same time or a core dies between two writes',
    async () => {
      const { setStatus, events } = await watched()
      await setStatus(SubscriptionStatus.DISABLED)
      for (let writes = 0; ; writes += 1) {
        const died = await hasFailed(flushFeed(test.mortalCore(writes)))
        if (!died) break
      }
      await Promise.all(test.cores.map((core) => flushFeed(core)))
      await Promise.all(test.cores.map((core) => catchUpFeed(core)))
      expect(await events()).toHaveLength(1)
    },
  )

  it('the endpoint of another workspace gets no event', async () => {
    const one = await watched()
    const other = await watched()
    await one.setStatus(SubscriptionStatus.DISABLED)
    await flushFeed(test.cores[0]!)
    const claimed = await one.worker.claim()
    expect(claimed.map(({ destination }) => destination)).toEqual([one.endpoint.subscriptionId])
    expect(other.endpoint.subscriptionId).not.toBe(one.endpoint.subscriptionId)
  })

  it('an operational endpoint never receives leads', async () => {
    const { operator, endpoint, leadId } = await watched()
    const { subscriptionId } = endpoint
    expect(endpoint.subscription!.purpose).toBe(purpose)
    const lead = operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'k' })
    await expect(lead).rejects.toThrow('SubscriptionNotFound')
    await expect(operator.updateSubscription({ subscriptionId, automatic: true })).rejects.toThrow('ValidationFailed')
    const mappedFields = { names: ['email'] }
    await expect(operator.updateSubscription({ subscriptionId, mappedFields })).rejects.toThrow('ValidationFailed')
    await expect(operator.createSubscription({ destinationUrl, purpose, automatic: true })).rejects.toThrow(
      'ValidationFailed',
    )
  })

  it('a test delivery to the endpoint contains a sample event', async () => {
    const { operator, endpoint, events } = await watched()
    await operator.sendTestDelivery({ subscriptionId: endpoint.subscriptionId, idempotencyKey: 'test' })
    expect(await events()).toMatchObject([
      { eventType: 'subscription.disabled', test: true, data: { reference: 'sub_test' } },
    ])
  })
})
