import type { Logger } from 'pino'
import { expect } from 'vitest'
import { type AttemptResult, createDeliveryResults } from '../deliveries/delivery-results.ts'
import { createDestinationHealth } from '../deliveries/destination-health.ts'
import type { QueuedDelivery } from '../delivery-stores/delivery-queue-store.ts'
import type { AttemptFacts, PendingFault, Settlement } from '../delivery-stores/model.ts'
import { createCoreMetrics } from '../metrics.ts'

export const at = Date.UTC(2030, 0, 1)
export const knownAt = new Date(at - 1000)

/**
 * Creates a recorder of results over an in-memory queue. `before` and `after` are the deliveries
 * stored before and after the write. `written` is the number of settlements that the write applies.
 */
export function newScene(
  { before = [], after = before, written, rows = [], isApplyFailing = false, apply = async () => {} } = {} as {
    before?: object[]
    after?: object[]
    written?: number
    rows?: string[]
    isApplyFailing?: boolean
    /** Called while faults are handled. */
    apply?: () => Promise<void>
  },
) {
  const seen = {
    asked: [] as string[][],
    settled: [] as Settlement[],
    announced: 0,
    lookedUp: [] as string[],
    reset: [] as string[],
    changed: [] as string[],
    faults: [] as PendingFault[],
    warned: [] as unknown[],
  }
  const metrics = createCoreMetrics()
  let settled = false
  const results = createDeliveryResults({
    queue: {
      async find(ids) {
        seen.asked.push(ids)
        return (settled ? after : before).filter((each) => ids.includes((each as QueuedDelivery).deliveryId)) as never
      },
      async settle(settlements) {
        seen.settled.push(...settlements)
        settled = true
        return written ?? settlements.length
      },
    },
    health: createDestinationHealth({
      subscriptions: {
        async resetNotFound(ids) {
          expect(ids).not.toEqual([])
          seen.reset.push(...ids)
        },
        markFailing: async () => {},
        resetFailures: () => Promise.reject(new Error('no subscription is failing here')),
      },
      liveSubscriptions: {
        async find(subscriptionId) {
          seen.lookedUp.push(subscriptionId)
          if (subscriptionId === 'sub_gone') return undefined
          const notFound = rows.includes(subscriptionId) ? ['att'] : []
          return { subscription: { subscriptionId, notFound } } as never
        },
        changed: async (...ids) => void seen.changed.push(...ids.filter((id) => seen.reset.includes(id))),
      },
      subscriptionDisabling: { disableFailing: () => Promise.reject(new Error('no subscription is failing here')) },
    }),
    subscriptionDisabling: {
      async apply(faults) {
        seen.faults.push(...faults)
        if (faults.length > 0) await apply()
        if (isApplyFailing) throw new TypeError('secret')
      },
    },
    announce: () => {
      seen.announced += 1
    },
    metrics,
    logger: { warn: (...line: unknown[]) => void seen.warned.push(line) } as unknown as Logger,
    settings: { retentionDays: 90 },
    now: () => at,
    random: () => 0,
  })
  const attempts = async () =>
    (await metrics.attempts.get()).values
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => `${labels.status} ${labels.response_class} ${value}`)
  return { ...seen, seen, record: results.record, add: results.add, attempts }
}

export function result(facts: AttemptFacts | 'released', more: Partial<AttemptResult> = {}): AttemptResult {
  const claimed = { attemptNumber: 1, subscriptionId: 'sub_1' }
  return { deliveryId: 'dlv_1', attemptId: 'att_1', claimId: 'clm_1', durationMs: 7, claimed, facts, ...more }
}

/** A delivery as the queue stores it while `clm_1` claims it. */
export const stored = (more: object = {}) => ({
  deliveryId: 'dlv_1',
  subscriptionId: 'sub_1',
  status: 'sending',
  claim: { claimId: 'clm_1', knownAt },
  attempts: [{ attemptId: 'att_8' }, { attemptId: 'att_9' }, { attemptId: 'att_1' }],
  ...more,
})
