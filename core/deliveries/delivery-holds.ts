import type { Logger } from 'pino'
import { createPace } from '../concurrency/pace.ts'
import type { DeliveryHoldStore } from '../delivery-stores/delivery-hold-store.ts'
import type { PendingFault } from '../delivery-stores/model.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import type { LiveSubscriptions } from '../destinations/live-subscriptions.ts'
import type { DisabledReason, SubscriptionStatus } from '../destinations/model.ts'

export interface DeliveryHolds {
  /**
   * Holds the waiting deliveries of a disabled subscription: the first ones at once, the others
   * later in the background, in steps with pauses. Claims skip deliveries of the subscription that
   * are not held yet.
   */
  hold(subscriptionId: string): Promise<void>
  /**
   * If the subscription is disabled, holds its deliveries, as `hold` does. If the subscription is
   * enabled, queues its held deliveries again, in the same steps. Repeats this if the status of the
   * subscription changed in the meantime.
   */
  applyStatus(subscriptionId: string): Promise<void>
  /**
   * Makes the deliveries match the status of their subscriptions, after a crash or a race, and their due
   * times match the clock, after a core's clock was ahead.
   */
  reconcile(): Promise<void>
  /** Returns the number of held deliveries per subscription, counted up to `heldCountMax`. */
  heldCounts(subscriptionIds: string[]): Promise<Map<string, number>>
  /** Ends the work in the background. `reconcile` completes it later. */
  close(): void
}

/**
 * When a subscription is enabled, the due times of its held deliveries are spread over a period, to
 * protect the destination. The period grows by this interval per delivery, up to `spreadMaxMs`.
 */
const spreadPerDeliveryMs = 10
const spreadMaxMs = 30_000
/** Maximum number of deliveries that one step holds or releases. */
const stepMax = 200
/**
 * Maximum number of deliveries in the first step. The call that changes the subscription waits for
 * this step, so the number is lower.
 */
const firstStepMax = 60
/** Counts of held deliveries end at this number, because a count reads each delivery. */
const heldCountMax = 10_000
/** Maximum share of the time that the steps of a subscription take. */
const share = 1 / 5
const maxPauseMs = 1000

export function createDeliveryHolds(dependencies: {
  store: DeliveryHoldStore
  subscriptions: Pick<LeadSubscriptionStore, 'find' | 'idsWithStatus'>
  /** Wakes waiting delivery workers. Called when a delivery may be due. */
  announce: () => void
  logger: Pick<Logger, 'warn'>
  now: () => number
}): DeliveryHolds {
  const { store, subscriptions, announce, logger, now } = dependencies
  const closed = new AbortController()
  /**
   * Subscriptions whose deliveries are held or released in the background. `again` is set if the
   * status of the subscription may have changed.
   */
  const running = new Map<string, { again: boolean }>()

  async function release(subscriptionId: string, limit: number) {
    const held = await store.countHeld(subscriptionId, spreadMaxMs / spreadPerDeliveryMs + 1)
    if (held === 0) return 0
    const spread = Math.min((held - 1) * spreadPerDeliveryMs, spreadMaxMs)
    const released = await store.release(subscriptionId, new Date(now()), spread, limit)
    announce()
    return released
  }

  /**
   * Holds or releases up to `limit` deliveries, depending on the status of the subscription.
   * `completed` is the status for which earlier steps have already changed all deliveries. If the
   * subscription still has that status, changes nothing and returns undefined.
   */
  async function step(subscriptionId: string, limit: number, completed?: SubscriptionStatus) {
    const [subscription] = await subscriptions.find([subscriptionId])
    if (!subscription || subscription.status === completed) return undefined
    const { status } = subscription
    const changed = await (status === 'disabled'
      ? store.hold(subscriptionId, new Date(now()), limit)
      : release(subscriptionId, limit))
    return { completed: changed < limit ? status : undefined }
  }

  /**
   * Runs the first step. If deliveries remain, continues in the background. Otherwise runs another
   * step only if the status has changed meanwhile.
   */
  async function applyStatus(subscriptionId: string) {
    for (let completed: SubscriptionStatus | undefined; ; ) {
      const done = await step(subscriptionId, firstStepMax, completed)
      if (!done) return
      if (done.completed === undefined) return continueLater(subscriptionId)
      completed = done.completed
    }
  }

  function continueLater(subscriptionId: string) {
    const state = running.get(subscriptionId)
    if (state) state.again = true
    else if (!closed.signal.aborted) void finishLater(subscriptionId)
  }

  async function finishLater(subscriptionId: string) {
    const state = { again: true }
    running.set(subscriptionId, state)
    const paced = createPace({ share, maxPauseMs, signal: closed.signal })
    try {
      while (state.again) {
        state.again = false
        for (let completed: SubscriptionStatus | undefined; ; ) {
          const done = await paced(async () => {
            if (!closed.signal.aborted) return step(subscriptionId, stepMax, completed)
          })
          if (!done) break
          completed = done.completed
        }
      }
    } catch (error) {
      if (!closed.signal.aborted)
        logger.warn({ reason: (error as Error).name }, 'holding or releasing deliveries failed; will retry')
    } finally {
      running.delete(subscriptionId)
    }
  }

  return {
    hold: async (subscriptionId) => {
      if (!running.has(subscriptionId)) await applyStatus(subscriptionId)
    },
    applyStatus,
    heldCounts: (subscriptionIds) => store.heldCounts(subscriptionIds, heldCountMax),

    async reconcile() {
      const waiting = await store.waiting()
      const holding = await store.holding()
      if (waiting.length + holding.length > 0) await store.bringForward(waiting, new Date(now()))
      const pending = [
        ...(await subscriptions.idsWithStatus(waiting, 'disabled')),
        ...(await subscriptions.idsWithStatus(holding, 'enabled')),
      ]
      for (const subscriptionId of pending) if (!running.has(subscriptionId)) await applyStatus(subscriptionId)
    },

    close: () => closed.abort(),
  }
}

export interface SubscriptionDisabling {
  /**
   * Handles answers that indicate a fault of the subscription, such as 401 or 410, and dead letters.
   * Disables the subscription if the fault requires it. A fault stays in the document of its
   * delivery until it has been handled.
   */
  apply(faults: PendingFault[]): Promise<void>
  /**
   * Disables a subscription if it is enabled, it is still failing, and its failures began at
   * `before` or earlier. `attemptId` is the last failed attempt.
   */
  disableFailing(subscriptionId: string, attemptId: string, before: Date): Promise<void>
  /**
   * Handles the faults that are still in documents of deliveries, for example because a process
   * crashed.
   */
  applyPending(): Promise<void>
}

const batch = 100

export function createSubscriptionDisabling(dependencies: {
  store: Pick<DeliveryHoldStore, 'pendingFaults' | 'removeFault'>
  subscriptions: Pick<LeadSubscriptionStore, 'disable' | 'countNotFound' | 'beginDeadLetters'>
  liveSubscriptions: Pick<LiveSubscriptions, 'changed'>
  holds: Pick<DeliveryHolds, 'hold'>
  now: () => number
}): SubscriptionDisabling {
  const { store, subscriptions, liveSubscriptions, holds, now } = dependencies

  /**
   * Handles one fault. Handling it again is safe, because a fault from before the last change of
   * the subscription is ignored.
   */
  async function applyOne({ subscriptionId, deliveryId, attemptId, kind, sentAt }: PendingFault) {
    const at = new Date(now())
    if (kind === 'dead_lettered') await subscriptions.beginDeadLetters(subscriptionId, deliveryId, at)
    else {
      const reason = await disablingReason(subscriptionId, attemptId, kind, sentAt)
      if (reason) await disable(subscriptionId, reason, attemptId, { sentAt })
    }
    // Notifies the other cores even if the subscription was already disabled. The process that
    // disabled it may have crashed before it notified them.
    await liveSubscriptions.changed(subscriptionId)
    await store.removeFault({ deliveryId, attemptId })
  }

  async function disable(
    subscriptionId: string,
    reason: DisabledReason,
    attemptId: string,
    cause: { sentAt: Date } | { failingBefore: Date },
  ) {
    const action = 'disabled' as const
    const entry = { at: new Date(now()), actor: 'service', action, attemptId, disabledReason: reason }
    if (!(await subscriptions.disable(subscriptionId, reason, entry, cause))) return
    await holds.hold(subscriptionId)
  }

  async function disablingReason(
    subscriptionId: string,
    attemptId: string,
    kind: Exclude<PendingFault['kind'], 'dead_lettered'>,
    sentAt: Date,
  ): Promise<DisabledReason | undefined> {
    if (kind !== 'not_found') return kind
    return (await subscriptions.countNotFound(subscriptionId, attemptId, sentAt)) ? 'gone' : undefined
  }

  return {
    async apply(faults) {
      for (const fault of faults) await applyOne(fault)
    },

    async disableFailing(subscriptionId, attemptId, before) {
      await disable(subscriptionId, 'failing', attemptId, { failingBefore: before })
      await liveSubscriptions.changed(subscriptionId)
    },

    async applyPending() {
      for (;;) {
        const pending = await store.pendingFaults(batch)
        for (const fault of pending) await applyOne(fault)
        if (pending.length < batch) return
      }
    },
  }
}
