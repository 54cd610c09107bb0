import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { codeOf, testDeliveries } from '../test/deliveries.ts'
import { reconcilePauses } from './pauses.ts'

const test = testDeliveries()

const second = 1000
const hour = 3_600_000

describe('RetryDeliveryAttempt', () => {
  it('RetryDeliveryAttempt replaces the scheduled attempt; a repeat with the same idempotency key adds no attempt', async () => {
    const { send, attempts, operator } = await test.newScene()
    const { deliveryId, attemptId } = await send()
    const worker = await test.worker()
    await worker.drain(500)
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'now' })),
    )
    expect(answers.filter(({ existing }) => !existing)).toHaveLength(1)
    expect(new Set(answers.map(({ attempt }) => attempt?.attemptId)).size).toBe(1)
    expect(answers[0]!.attempt).toMatchObject({
      deliveryId,
      attemptNumber: 2,
      status: DeliveryStatus.PENDING,
      manual: true,
    })
    test.advance(hour)
    expect(await worker.drain(500)).toBe(1)
    // The manual attempt counts as the second attempt, so the delay after it is 30 s.
    const latest = (await attempts(deliveryId)).at(-1)!
    expect(Number(latest.nextRetryAt!.seconds) * 1000 - test.now()).toBeGreaterThan(25 * second)
    test.advance(35 * second)
    expect(await worker.drain(200)).toBe(1)
    expect((await attempts(deliveryId)).map(({ manual }) => manual)).toEqual([true, true, false])
  })

  itLong(
    'RetryDeliveryAttempt accepts only one of several concurrent calls that use one idempotency key for different deliveries',
    async () => {
      const { send, operator } = await test.newScene()
      const sent = [await send(), await send(), await send(), await send()]
      const worker = await test.worker()
      await worker.drain(500)
      for (let round = 0; round < 2; round += 1) {
        const codes = await Promise.all(
          sent.map(({ attemptId }) =>
            codeOf(operator.retryDeliveryAttempt({ attemptId, idempotencyKey: `one-${round}` })),
          ),
        )
        expect(codes.filter((code) => code === undefined)).toHaveLength(1)
        expect(codes.filter((code) => code === 'IdempotencyConflict')).toHaveLength(3)
        await worker.drain(400)
      }
    },
  )

  it('RetryDeliveryAttempt is rejected while the delivery is pending, sending or accepted, even if the named attempt failed', async () => {
    const { send, operator } = await test.newScene()
    const { attemptId } = await send()
    const worker = await test.worker()
    const retry = (idempotencyKey: string) => codeOf(operator.retryDeliveryAttempt({ attemptId, idempotencyKey }))
    expect(await retry('r1')).toBe('AttemptNotRetryable')
    const [claimed] = await worker.claim()
    expect(await retry('r1')).toBe('AttemptNotRetryable')
    await worker.answer(claimed!, 400)
    expect(await retry('r1')).toBeUndefined()
    // The first attempt failed, but the delivery is pending again, so a retry is not allowed.
    expect(await retry('r2')).toBe('AttemptNotRetryable')
    expect(await retry('r1')).toBeUndefined()
    await worker.drain(200)
    expect(await retry('r2')).toBe('AttemptNotRetryable')
  })

  it('RetryDeliveryAttempt adds one attempt with the same body to a dead letter; if that attempt fails, the delivery is a dead letter again', async () => {
    const { send, attempts, operator } = await test.newScene()
    const { deliveryId, attemptId } = await send()
    const worker = await test.worker()
    for (let number = 1; number <= 9; number += 1) {
      expect(await worker.drain(503)).toBe(1)
      test.advance(13 * hour)
    }
    await operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'again' })
    const [claimed] = await worker.claim()
    expect(JSON.parse(Buffer.from(claimed!.body).toString())).toMatchObject({ id: deliveryId, data: { name: 'Mia' } })
    await worker.answer(claimed!, 503)
    expect((await attempts(deliveryId)).at(-1)).toMatchObject({
      attemptNumber: 10,
      status: DeliveryStatus.DEAD_LETTERED,
      manual: true,
    })
  })

  itLong('RetryDeliveryAttempt rejects retries after 50 attempts', async () => {
    const { send, operator, attempts } = await test.newScene()
    const { deliveryId, attemptId } = await send()
    const worker = await test.worker()
    await worker.drain(400)
    for (let number = 2; number <= 50; number += 1) {
      await operator.retryDeliveryAttempt({ attemptId, idempotencyKey: `r${number}` })
      await worker.drain(400)
    }
    expect(await codeOf(operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'one more' }))).toBe(
      'ValidationFailed',
    )
    expect(await codeOf(operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'r51' }))).toBe(
      'AttemptNotRetryable',
    )
    expect(await attempts(deliveryId)).toHaveLength(50)
  })
})

describe('after a core’s clock was two hours ahead', () => {
  /** Runs a step while the clock is ahead, and then the periodic work. */
  async function whileAhead<T>(step: () => Promise<T>): Promise<T> {
    test.advance(2 * hour)
    const result = await step()
    test.advance(-2 * hour)
    await reconcilePauses(test.cores[1]!)
    return result
  }

  it('a retry waits no longer than its pause', async () => {
    const { send, attempts } = await test.newScene()
    const { deliveryId } = await send()
    const worker = await test.worker()
    await whileAhead(() => worker.drain(503))
    const due = Number((await attempts(deliveryId)).at(-1)!.nextRetryAt!.seconds) * 1000
    expect(due - test.now()).toBeLessThanOrEqual(6 * second)
    expect(await worker.drain()).toBe(0)
    test.advance(6 * second)
    expect(await worker.drain()).toBe(1)
  })

  it('a retry that is held waits no longer than its pause when it is released', async () => {
    const { send, operator, subscriptionId } = await test.newScene()
    await send()
    const worker = await test.worker()
    await whileAhead(async () => {
      await worker.drain(503)
      await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    })
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    test.advance(6 * second)
    expect(await worker.drain()).toBe(1)
  })

  it('a new delivery is sent at once, and one of a dead worker when its lease has ended', async () => {
    const { send } = await test.newScene()
    const worker = await test.worker()
    await whileAhead(() => send())
    expect(await worker.drain()).toBe(1)
    await whileAhead(async () => {
      await send()
      expect(await worker.claim()).toHaveLength(1)
    })
    expect(await worker.claim()).toHaveLength(0)
    test.advance(30 * second)
    expect(await worker.claim()).toHaveLength(1)
  })

  it('a retry whose pause the destination asked for waits that long', async () => {
    const { send, attempts } = await test.newScene()
    const { deliveryId } = await send()
    const worker = await test.worker()
    await whileAhead(async () => {
      for (const delivery of await worker.claim()) await worker.answer(delivery, 503, hour / 2)
    })
    const due = Number((await attempts(deliveryId)).at(-1)!.nextRetryAt!.seconds) * 1000
    expect(due - test.now()).toBeGreaterThan(29 * 60 * second)
    expect(due - test.now()).toBeLessThanOrEqual(36 * 60 * second)
  })
})
