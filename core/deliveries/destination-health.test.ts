import { describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { DisabledReason, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { someOf } from '../../test/support/is-long.ts'
import { hasFailed } from '../test/cores.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { failingMaxMs } from './faults.ts'

const test = testDeliveries()

const hour = 3_600_000

/** Creates a subscription, and a function that sends a delivery and answers it with a status. */
async function answering() {
  const scene = await test.newScene()
  const worker = await test.worker()
  return {
    ...scene,
    worker,
    async answer(status: number) {
      await scene.send()
      for (const delivery of await worker.claim()) await worker.answer(delivery, status)
    },
  }
}

describe('a subscription that fails for five days', () => {
  it.each(someOf([400, 500], 1))(
    'five days of %i answers disable the subscription with the reason FAILING',
    async (status) => {
      const { answer, subscription, operator, subscriptionId } = await answering()
      await answer(status)
      expect((await subscription()).failingSince).toBeDefined()
      for (let day = 1; day < 5; day += 1) {
        test.advance(24 * hour)
        await answer(status)
      }
      expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
      test.advance(24 * hour)
      await answer(status)
      expect(await subscription()).toMatchObject({
        status: SubscriptionStatus.DISABLED,
        disabledReason: DisabledReason.FAILING,
      })
      const { audit } = await operator.getSubscription({ subscriptionId })
      expect(audit[0]).toMatchObject({ actor: 'service', action: 'disabled', disabledReason: DisabledReason.FAILING })
    },
  )

  it('a success between two failures resets the time of the first failure', async () => {
    const { answer, subscription } = await answering()
    await answer(500)
    test.advance(failingMaxMs - hour)
    await answer(200)
    expect((await subscription()).failingSince).toBeUndefined()
    test.advance(2 * hour)
    await answer(500)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
  })

  it('a success and failures in one report count as a success', async () => {
    const { answer, subscription, send, worker } = await answering()
    await answer(500)
    test.advance(failingMaxMs)
    await send()
    await send()
    const [one, ...others] = await worker.claim()
    const resultOf = ({ deliveryId, attemptId, claimId }: typeof one & object, status: number) => ({
      deliveryId,
      attemptId,
      claimId,
      outcome: { case: 'response' as const, value: { status } },
    })
    await worker.record([resultOf(one!, 200), ...others.map((each) => resultOf(each, 500))])
    const { status, failingSince } = await subscription()
    expect([status, failingSince]).toEqual([SubscriptionStatus.ENABLED, undefined])
  })

  it.each(['enabling the subscription', 'a new destination'])(
    'the time of the first failure is reset by %s',
    async (what) => {
      const { answer, subscription, operator, subscriptionId } = await answering()
      await answer(500)
      test.advance(failingMaxMs)
      if (what === 'a new destination') {
        await operator.updateSubscription({ subscriptionId, destinationUrl: 'https://crm.example/new' })
      } else {
        for (const status of [SubscriptionStatus.DISABLED, SubscriptionStatus.ENABLED])
          await operator.updateSubscription({ subscriptionId, status })
      }
      test.advance(hour)
      await answer(500)
      expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
    },
  )

  it('if a core dies while it disables a subscription, a repeated report of the worker completes the change', async () => {
    const { answer, subscription, send, worker } = await answering()
    await answer(500)
    test.advance(failingMaxMs)
    await send()
    const [{ deliveryId, attemptId, claimId, attemptNumber, destination }] = (await worker.claim()) as [ClaimedDelivery]
    const outcome = { case: 'response' as const, value: { status: 500 } }
    const results = [{ deliveryId, attemptId, claimId, attemptNumber, destination, outcome }]
    for (let writes = 0; ; writes += 1) {
      const dying = await test.worker(test.mortalCore(writes))
      const hasDied = await hasFailed(dying.record(results))
      if (!hasDied) break
    }
    expect((await subscription()).status).toBe(SubscriptionStatus.DISABLED)
  })

  it('failures of one subscription do not affect another', async () => {
    const one = await answering()
    const other = await test.newScene()
    await one.answer(500)
    expect((await one.subscription()).failingSince).toBeDefined()
    expect((await other.subscription()).failingSince).toBeUndefined()
  })
})
