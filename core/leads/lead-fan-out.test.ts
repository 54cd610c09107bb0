import { describe, expect, it } from 'vitest'
import { DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { leadFanOutOf } from '../deliveries/lead-capture.ts'
import { operatorScopes, testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()

const leads = () => test.cores[0]!.database.collections.leads

describe('a captured lead', () => {
  it('is delivered to each automatic subscription of its workspace and no other', async () => {
    const { operator, subscriptionId } = await test.newScene({ automatic: true })
    const other = await operator.createSubscription({ destinationUrl: 'https://b.example/', automatic: true })
    await operator.createSubscription({ destinationUrl: 'https://c.example/' })
    await test.newScene({ automatic: true })
    await test.clear()
    const { leadId } = await operator.captureLead({ source: 'test', fields: { name: 'Mia' } })
    const { deliveries } = await operator.listDeliveries({})
    expect(deliveries).toHaveLength(2)
    expect(new Set(deliveries.map((delivery) => delivery.subscriptionId))).toEqual(
      new Set([subscriptionId, other.subscriptionId]),
    )
    expect(deliveries[0]).toMatchObject({ leadId, status: DeliveryStatus.PENDING, latestAttempt: { manual: false } })
    expect(await leads().findOne({ _id: leadId })).not.toHaveProperty('fanOut')
    expect(await (await test.worker()).drain()).toBe(2)
  })

  it('has a delivery with the status `held` while the subscription is disabled', async () => {
    const { operator, subscriptionId, subscription } = await test.newScene({ automatic: true })
    await test.clear()
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await operator.captureLead({ source: 'test', fields: { name: 'Mia' } })
    expect(await (await test.worker()).claim()).toEqual([])
    expect((await subscription()).heldDeliveries).toBe(1)
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    expect(await (await test.worker()).drain()).toBe(1)
  })

  it('is stored even if its webhook body exceeds the size limit, and its delivery then has one failed attempt', async () => {
    const fields = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, 'x'.repeat(4000)]))
    const { operator, leadId } = await test.newScene({ automatic: true, mappedFields: Object.keys(fields), fields })
    const { attempts } = await operator.listDeliveryAttempts({ leadId })
    expect(attempts).toMatchObject([
      { status: DeliveryStatus.FAILED, responseClass: ResponseClass.REJECTED_PAYLOAD, attemptNumber: 1 },
    ])
    const { attemptId } = attempts[0]!
    await expect(operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'k' })).rejects.toThrow(
      'AttemptNotRetryable',
    )
    expect(await (await test.worker()).claim()).toEqual([])
  })

  it('does not block the fan-out of other leads if its own fan-out fails', async () => {
    const { workspaceId, operator } = await test.newScene({ automatic: true })
    await test.clear()
    const since = new Date(test.now() - 60_000)
    const subscriptionIds = (await operator.listSubscriptions({})).subscriptions.map((each) => each.subscriptionId)
    const lead = { workspaceId, source: 'left behind', createdAt: since, fanOut: { subscriptionIds, since } }
    await leads().insertMany([
      // The fan-out of this lead fails, because its fields are invalid.
      { _id: 'lead_broken', ...lead, fields: null as never },
      { _id: 'lead_good', ...lead, fields: { name: 'Mia' } },
    ])
    await expect(leadFanOutOf(test.cores[0]!).run()).rejects.toThrow()
    const { deliveries } = await operator.listDeliveries({})
    expect(deliveries.map(({ leadId }) => leadId)).toEqual(['lead_good'])
    await leads().deleteOne({ _id: 'lead_broken' })
  })

  itLong('gets exactly one delivery per subscription, no matter after which write its core dies', async () => {
    for (let writes = 0; ; writes += 1) {
      const { workspaceId, operator } = await test.newScene({ automatic: true })
      await operator.createSubscription({ destinationUrl: 'https://b.example/', automatic: true })
      await test.clear()
      const mortal = await test.client(test.mortalCore(writes), operatorScopes, workspaceId)
      const captured = await mortal.captureLead({ source: 'dying', fields: { name: 'Mia' } }).then(
        () => true,
        () => false,
      )
      test.advance(6000)
      await Promise.all(test.cores.map((core) => leadFanOutOf(core).run()))
      await leadFanOutOf(test.cores[0]!).run()
      const kept = await leads().find({ workspaceId, source: 'dying' }).toArray()
      const { deliveries } = await operator.listDeliveries({})
      // The lead is either not stored, or has one delivery per subscription.
      expect(captured).toBe(kept.length === 1)
      expect(deliveries).toHaveLength(2 * kept.length)
      expect(kept.filter((lead) => 'fanOut' in lead)).toEqual([])
      if (writes === 4) return
    }
  })
})
