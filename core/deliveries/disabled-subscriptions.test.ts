import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { hasFailed } from '../test/cores.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { pendingFaultsOf } from './faults.ts'
import { reconcilePauses } from './pauses.ts'

const test = testDeliveries()

const second = 1000
const hour = 3_600_000

const disable = { status: SubscriptionStatus.DISABLED }
const enable = { status: SubscriptionStatus.ENABLED }

describe('disabled subscriptions', () => {
  it('a disabled subscription holds pending and scheduled deliveries; their status is restored when it is enabled', async () => {
    const { send, operator, subscriptionId, attempts } = await test.newScene()
    const worker = await test.worker()
    const scheduled = await send()
    await worker.drain(500)
    const pending = await send()
    await operator.updateSubscription({ subscriptionId, ...disable })
    for (const { deliveryId } of [scheduled, pending]) {
      expect(await attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.HELD }])
    }
    test.advance(hour)
    expect(await worker.claim()).toEqual([])
    await operator.updateSubscription({ subscriptionId, ...enable })
    expect(await attempts(scheduled.deliveryId)).toMatchObject([{ status: DeliveryStatus.RETRY_SCHEDULED }])
    expect(await attempts(pending.deliveryId)).toMatchObject([{ status: DeliveryStatus.PENDING }])
    test.advance(second)
    expect(await worker.drain(200)).toBe(2)
    expect(await attempts(scheduled.deliveryId)).toHaveLength(2)
    expect(await attempts(pending.deliveryId)).toHaveLength(1)
  })

  it('a disabled subscription rejects a manual retry', async () => {
    const { send, operator, subscriptionId } = await test.newScene()
    const { attemptId } = await send()
    await (await test.worker()).drain(400)
    await operator.updateSubscription({ subscriptionId, ...disable })
    await expect(operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'k' })).rejects.toThrow(
      'SubscriptionDisabled',
    )
  })

  it('for a disabled subscription, results of claimed deliveries are recorded, and deliveries that need a retry are held', async () => {
    const { send, operator, subscriptionId, attempts } = await test.newScene()
    const [a, b, c] = [await send(), await send(), await send()]
    const worker = await test.worker()
    const claimed = new Map((await worker.claim()).map((delivery) => [delivery.deliveryId, delivery]))
    await operator.updateSubscription({ subscriptionId, ...disable })
    expect(await worker.answer(claimed.get(a.deliveryId)!, 200)).toBe(true)
    expect(await worker.answer(claimed.get(b.deliveryId)!, 500)).toBe(true)
    test.advance(60 * second)
    // Delivery c has no result, as if its worker had died. The next claim sets b and c to held.
    expect(await worker.claim()).toEqual([])
    expect(await attempts(a.deliveryId)).toMatchObject([{ status: DeliveryStatus.ACCEPTED }])
    expect(await attempts(b.deliveryId)).toMatchObject([{ status: DeliveryStatus.HELD }])
    expect(await attempts(c.deliveryId)).toMatchObject([{ status: DeliveryStatus.HELD }])
    expect(await worker.answer(claimed.get(c.deliveryId)!, 200)).toBe(false)
    await operator.updateSubscription({ subscriptionId, ...enable })
    test.advance(second)
    expect(await worker.drain()).toBe(2)
    expect(await attempts(c.deliveryId)).toMatchObject([{ status: DeliveryStatus.ACCEPTED, attemptNumber: 1 }])
  })

  it('enabling a subscription spreads the due times of its 60 held deliveries', async () => {
    const { sendMany, operator, subscriptionId } = await test.newScene()
    await sendMany(60)
    await operator.updateSubscription({ subscriptionId, ...disable })
    const from = test.now()
    await operator.updateSubscription({ subscriptionId, ...enable })
    const to = test.now() + 600
    const found = await test.cores[0]!.database.collections.deliveries.find({ subscriptionId }).toArray()
    const times = found.map(({ dueAt }) => dueAt?.getTime() ?? 0)
    expect(times).toHaveLength(60)
    expect(new Set(times).size).toBeGreaterThan(20)
    expect(times.filter((time) => time < from || time > to)).toEqual([])
  })
})

describe('a disabled subscription with many waiting deliveries', () => {
  itLong(
    'holds and releases the deliveries in background steps, and applies the last of several status changes',
    async () => {
      const { sendMany, operator, subscriptionId, subscription } = await test.newScene()
      const { deliveries } = test.cores[0]!.database.collections
      await sendMany(1500)
      await operator.updateSubscription({ subscriptionId, ...disable })
      expect(await deliveries.countDocuments({ subscriptionId, status: 'pending' })).toBeGreaterThan(500)
      expect(await (await test.worker()).claim()).toEqual([])
      await until('all to be held', async () => (await subscription()).heldDeliveries === 1500)
      await operator.updateSubscription({ subscriptionId, ...enable })
      await operator.updateSubscription({ subscriptionId, ...disable })
      await operator.updateSubscription({ subscriptionId, ...enable })
      await until('all to be released', async () => (await subscription()).heldDeliveries === 0)
      expect(await deliveries.countDocuments({ subscriptionId, status: 'pending' })).toBe(1500)
      await test.clear()
    },
  )

  itLong('holds all deliveries after reconciliation on another core if the first core died midway', async () => {
    const { sendMany, operator, subscriptionId, subscription, workspaceId } = await test.newScene()
    await sendMany(450)
    const dying = await test.client(test.mortalCore(2), ['subscriptions:write', 'leads:read'], workspaceId)
    await dying.updateSubscription({ subscriptionId, ...disable }).catch(() => {})
    await reconcilePauses(test.cores[1]!)
    await until('all to be held', async () => (await subscription()).heldDeliveries === 450)
    await operator.updateSubscription({ subscriptionId, ...enable })
    await until('all to be released', async () => (await subscription()).heldDeliveries === 0)
  })
})

describe('the death of a core', () => {
  const worker = () => test.worker()

  itLong(
    'a core that dies while it records a 401 result loses neither the result nor the disabling of the subscription',
    async () => {
      for (let writes = 0; ; writes += 1) {
        const { send, subscription, attempts } = await test.newScene()
        await send()
        await send()
        const [claimed] = await (await worker()).claim({ limit: 1 })
        const mortal = test.mortalCore(writes)
        const dying = await test.worker(mortal)
        const died = await hasFailed(dying.answer(claimed!, 401))
        // The worker repeats the result on another core. Reconciliation disables the subscription.
        if (died) expect(await (await worker()).answer(claimed!, 401)).toBe(true)
        await pendingFaultsOf(test.cores[1]!).run()
        await reconcilePauses(test.cores[1]!)
        expect(await subscription()).toMatchObject({ status: SubscriptionStatus.DISABLED, heldDeliveries: 1 })
        expect(await attempts(claimed!.deliveryId)).toMatchObject([{ status: DeliveryStatus.FAILED }])
        const left = await test.cores[0]!.database.collections.deliveries.countDocuments({ verdict: { $exists: true } })
        expect(left).toBe(0)
        await test.clear()
        if (writes > 6) return
      }
    },
  )

  itLong(
    'a core that dies while it enables or disables a subscription leaves deliveries in a state that reconciliation repairs',
    async () => {
      for (const status of [SubscriptionStatus.DISABLED, SubscriptionStatus.ENABLED]) {
        for (let writes = 0; writes < 3; writes += 1) {
          const { send, operator, subscriptionId, subscription, workspaceId } = await test.newScene()
          await send()
          if (status === SubscriptionStatus.ENABLED)
            await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
          const dying = await test.client(test.mortalCore(writes), ['subscriptions:write', 'leads:read'], workspaceId)
          await dying.updateSubscription({ subscriptionId, status }).catch(() => {})
          await reconcilePauses(test.cores[1]!)
          const now = await subscription()
          expect(now.heldDeliveries).toBe(now.status === SubscriptionStatus.DISABLED ? 1 : 0)
          if (writes > 0) expect(now.status).toBe(status)
          await test.clear()
        }
      }
    },
  )
})
