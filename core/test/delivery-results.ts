import { createBus } from '../bus.ts'
import { faultsOf } from '../deliveries/faults.ts'
import { liveSubscriptionsOf } from '../deliveries/live-subscriptions.ts'
import type { AttemptFacts, Delivery, PendingFault, Settlement } from '../deliveries/model.ts'
import { type DeliveryQueue, deliveryQueueOf } from '../deliveries/queue.ts'
import { type AttemptResult, addResult } from '../deliveries/results.ts'
import { createCoreMetrics } from '../metrics.ts'
import { type Wakeups, wakeupsOf } from '../wakeups/wakeups.ts'
import { addResults } from './claims.ts'
import { bareCore } from './core-with.ts'

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
  const updateOne = async ({ _id }: { _id: string }, update: { $set?: object; $unset?: object }) => {
    if (update.$unset) throw new Error('no subscription is failing here')
    if ('notFound' in (update.$set ?? {})) seen.reset.push(_id)
  }
  const core = bareCore({
    bus: createBus(),
    db: { leadSubscriptions: { updateOne } },
    metrics,
    logger: { warn: (...line: unknown[]) => void seen.warned.push(line) },
    config: { DELIVERY_RETENTION_DAYS: 90 },
    now: () => at,
    random: () => 0,
  })
  deliveryQueueOf.set(core, {
    async find(ids: string[]) {
      seen.asked.push(ids)
      return (settled ? after : before).filter((each) => ids.includes((each as Delivery).deliveryId))
    },
    async settle(settlements: Settlement[]) {
      seen.settled.push(...settlements)
      settled = true
      return written ?? settlements.length
    },
  } as unknown as DeliveryQueue)
  liveSubscriptionsOf.set(core, {
    async find(subscriptionId: string) {
      seen.lookedUp.push(subscriptionId)
      if (subscriptionId === 'sub_gone') return undefined
      const notFound = rows.includes(subscriptionId) ? ['att'] : []
      return { subscription: { subscriptionId, notFound }, readAt: new Date(at) } as never
    },
    isFollowed: async () => false,
    changed: async (...ids) => void seen.changed.push(...ids.filter((id) => seen.reset.includes(id))),
  })
  faultsOf.set(core, async (faults) => {
    seen.faults.push(...faults)
    if (faults.length > 0) await apply()
    if (isApplyFailing) throw new TypeError('secret')
  })
  const hint = async () => {
    seen.announced += 1
  }
  wakeupsOf.set(core, { hint } as unknown as Wakeups)
  const attempts = async () =>
    (await metrics.attempts.get()).values
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => `${labels.status} ${labels.response_class} ${value}`)
  const record = (results: AttemptResult[]) => addResults(core, results)
  return { ...seen, seen, record, add: (one: AttemptResult) => addResult(core, one), attempts }
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
