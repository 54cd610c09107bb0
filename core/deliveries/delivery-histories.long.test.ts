import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ClaimedDelivery, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { isLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { reconcilePauses } from './pauses.ts'

const test = testDeliveries()

/** One event in the history of a delivery. Events occur in any order. */
type Step =
  | { kind: 'claim'; core: number }
  | { kind: 'answer'; status: 200 | 400 | 503; stale: boolean }
  | { kind: 'die' }
  | { kind: 'renew' }
  | { kind: 'wait' }
  | { kind: 'retry' }
  | { kind: 'disable' }
  | { kind: 'enable' }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('claim' as const), core: fc.nat(1) }) },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('answer' as const),
        status: fc.constantFrom(503 as const, 503 as const, 400 as const, 200 as const),
        stale: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.constant<Step>({ kind: 'die' }) },
    { weight: 2, arbitrary: fc.constant<Step>({ kind: 'renew' }) },
    { weight: 3, arbitrary: fc.constant<Step>({ kind: 'wait' }) },
    { weight: 2, arbitrary: fc.constant<Step>({ kind: 'retry' }) },
    { weight: 1, arbitrary: fc.constant<Step>({ kind: 'disable' }) },
    { weight: 2, arbitrary: fc.constant<Step>({ kind: 'enable' }) },
  ),
  { minLength: 8, maxLength: 25 },
)

/** Expected state of the delivery according to the API contract. */
interface Model {
  status: 'pending' | 'sending' | 'retry_scheduled' | 'held' | 'accepted' | 'failed' | 'dead_lettered'
  /** Status that is restored when the subscription of the held delivery is enabled. */
  under: 'pending' | 'retry_scheduled'
  attempts: number
  enabled: boolean
  /** Whether the delay of the scheduled retry has passed. */
  due: boolean
}

const longerThanAnyRetryDelay = 20 * 3_600_000
const longerThanALease = 21_000
const shorterThanALease = 2_000
const renewableForMs = 20_000

describe('deliveries', () => {
  it('after random sequences of events, a delivery has the status and attempts that the contract describes', async () => {
    const workers = await Promise.all(test.cores.map((core) => test.worker(core)))
    let keys = 0
    await fc.assert(
      fc.asyncProperty(fc.boolean(), steps, async (isHandedOver, sequence) => {
        await test.clear()
        const { send, operator, subscriptionId, attempts } = await test.newScene()
        // A worker with a stream receives the delivery at once. Without one, the delivery is queued.
        const stream = isHandedOver ? await test.stream({ limit: 1 }) : undefined
        const { deliveryId, attemptId } = await send()
        if (stream) await until('the delivery', () => stream.received().length > 0)
        stream?.leave()
        await stream?.ended
        const model: Model = { status: 'pending', under: 'pending', attempts: 1, enabled: true, due: true }
        let [claimed] = stream?.received() ?? []
        if (claimed) model.status = 'sending'
        let lost: ClaimedDelivery | undefined
        let claimedAt = test.now()

        const advance = (ms: number) => {
          test.advance(ms)
          model.due = true
        }

        const play: { [K in Step['kind']]: (step: Extract<Step, { kind: K }>) => Promise<void> } = {
          async claim({ core }) {
            const expected =
              model.enabled && (model.status === 'pending' || (model.status === 'retry_scheduled' && model.due))
            const [got] = await workers[core]!.claim()
            expect(got?.deliveryId).toBe(expected ? deliveryId : undefined)
            if (!got) return
            claimed = got
            claimedAt = test.now()
            if (model.status === 'retry_scheduled') model.attempts += 1
            model.status = 'sending'
          },
          async answer({ status, stale }) {
            const reported = stale ? lost : claimed
            if (!reported) return
            const counts = await workers[0]!.answer(reported, status)
            if (stale) {
              expect(counts).toBe(false)
              return
            }
            expect(counts).toBe(true)
            claimed = undefined
            model.due = false
            if (status === 200) model.status = 'accepted'
            else if (status === 400) model.status = 'failed'
            else model.status = model.attempts < 9 ? 'retry_scheduled' : 'dead_lettered'
          },
          async die() {
            if (!claimed) return
            lost = claimed
            claimed = undefined
            advance(longerThanALease)
            // The lease has expired, so the claim takes over the delivery. If the subscription is
            // disabled, the claim holds the delivery instead.
            const [got] = await workers[1]!.claim()
            if (model.enabled) {
              expect(got).toMatchObject({ deliveryId, attemptId: lost.attemptId })
              claimed = got
              claimedAt = test.now()
            } else {
              expect(got).toBeUndefined()
              model.status = 'held'
              model.under = 'pending'
            }
          },
          async renew() {
            const held = async (of: ClaimedDelivery | undefined) => {
              if (!of) return undefined
              const claims = [{ deliveryId, claimId: of.claimId }]
              return (await workers[1]!.renew(claims))[0]
            }
            expect(await held(lost)).not.toBe(true)
            if (!claimed) return
            // Another test covers the renewal of a claim beyond its maximum age.
            if (test.now() - claimedAt > renewableForMs) return
            test.advance(shorterThanALease)
            expect(await held(claimed)).toBe(true)
            test.advance(shorterThanALease)
            // The renewed lease keeps the delivery from other workers after the first lease time.
            expect(await workers[0]!.claim()).toEqual([])
          },
          async wait() {
            // Do not advance the clock while a worker has a lease. The lease would expire, which is
            // the separate step `die`.
            if (!claimed) advance(longerThanAnyRetryDelay)
          },
          async retry() {
            const allowed = model.enabled && ['retry_scheduled', 'failed', 'dead_lettered'].includes(model.status)
            keys += 1
            const retried = await operator.retryDeliveryAttempt({ attemptId, idempotencyKey: `k${keys}` }).then(
              ({ attempt }) => attempt,
              () => undefined,
            )
            expect(retried?.attemptNumber).toBe(allowed ? model.attempts + 1 : undefined)
            if (!allowed) return
            model.attempts += 1
            model.status = 'pending'
          },
          async disable() {
            await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
            model.enabled = false
          },
          async enable() {
            await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
            model.enabled = true
            if (model.status === 'held') model.status = model.under
          },
        }

        for (const step of sequence) {
          await play[step.kind](step as never)
          // Deliveries of a disabled subscription become held at once or by the reconciliation below.
          if (!model.enabled && (model.status === 'pending' || model.status === 'retry_scheduled')) {
            model.under = model.status
            model.status = 'held'
          }
          await reconcilePauses(test.cores[1]!)
          const shown = await attempts(deliveryId)
          expect(DeliveryStatus[shown.at(-1)!.status]?.toLowerCase()).toBe(model.status)
          expect(shown).toHaveLength(model.attempts)
          expect(shown.map(({ attemptNumber }) => attemptNumber)).toEqual(shown.map((_, index) => index + 1))
        }
      }),
      { numRuns: isLong ? 50 : 12, seed: 5 },
    )
  })
})
