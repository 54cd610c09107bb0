import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()
beforeAll(() => test.open())
beforeEach(() => test.clear())

describe('a test delivery', () => {
  it('a test delivery has sample data of the mapped fields and no lead, and is listed with its attempts', async () => {
    const { operator, subscriptionId, attempts } = await test.newScene({ mappedFields: ['name', 'email'] })
    const { attempt, existing } = await operator.sendTestDelivery({ subscriptionId, idempotencyKey: 'k' })
    expect([attempt!.leadId, attempt!.manual, existing]).toEqual(['', true, false])
    expect(attempt!.eventType).toBe('lead.ready-for-delivery')
    const worker = await test.worker()
    const [claimed] = await worker.claim()
    expect(JSON.parse(Buffer.from(claimed!.body).toString())).toMatchObject({
      eventType: 'lead.ready-for-delivery',
      id: attempt!.deliveryId,
      contractVersion: '1.0',
      test: true,
      data: { reference: 'lead_test', name: 'Test', email: 'test@example.com' },
    })
    await worker.answer(claimed!, 500)
    expect(await attempts(attempt!.deliveryId)).toMatchObject([{ status: DeliveryStatus.RETRY_SCHEDULED }])
    const { deliveries } = await operator.listDeliveries({ subscriptionId })
    expect(deliveries.map(({ deliveryId }) => deliveryId)).toEqual([attempt!.deliveryId])
    const again = { attemptId: claimed!.attemptId, idempotencyKey: 'again' }
    expect((await operator.retryDeliveryAttempt(again)).attempt).toMatchObject({ leadId: '', attemptNumber: 2 })
  })

  it('a repeat returns the test delivery even if the subscription no longer has the type of its event', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const setTypes = (types: string[]) => operator.updateSubscription({ subscriptionId, policy: { types } })
    const send = () =>
      operator.sendTestDelivery({ subscriptionId, eventType: 'lead.captured', idempotencyKey: 'captured' })
    await setTypes(['lead.captured'])
    const { attempt } = await send()
    await setTypes(['lead.ready-for-delivery'])
    expect(await send()).toMatchObject({ existing: true, attempt: { attemptId: attempt!.attemptId } })
  })

  it('a test delivery is sent once per idempotency key, and a key that was used for another subscription is rejected', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const send = (id = subscriptionId) => operator.sendTestDelivery({ subscriptionId: id, idempotencyKey: 'k' })
    const sent = await Promise.all([send(), send(), send()])
    expect(new Set(sent.map(({ attempt }) => attempt!.attemptId)).size).toBe(1)
    const { subscriptionId: other } = await operator.createSubscription({ destinationUrl: 'https://crm.example/b' })
    await expect(send(other)).rejects.toThrow('IdempotencyConflict')
    await expect(operator.sendTestDelivery({ subscriptionId, idempotencyKey: '' })).rejects.toThrow('ValidationFailed')
  })

  it('a test delivery is rejected for a disabled subscription and for another workspace', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const { operator: stranger } = await test.newScene()
    const call = { subscriptionId, idempotencyKey: 'k' }
    await expect(stranger.sendTestDelivery(call)).rejects.toThrow('SubscriptionNotFound')
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await expect(operator.sendTestDelivery(call)).rejects.toThrow('SubscriptionDisabled')
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    await expect(operator.sendTestDelivery(call)).resolves.toBeDefined()
    await operator.deleteSubscription({ subscriptionId })
    await expect(operator.sendTestDelivery({ ...call, idempotencyKey: 'l' })).rejects.toThrow('SubscriptionNotFound')
  })
})
