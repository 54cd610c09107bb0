import type { SubscriptionFault } from './delivery-outcomes.ts'
import type { DeliveryHoldStore } from './delivery-store.ts'
import type { LeadSubscriptionStore } from './lead-subscription-store.ts'
import type { LiveSubscriptions } from './live-subscriptions.ts'
import type { DisabledReason, PendingFault } from './model.ts'

export interface DeliveryHolds {
  /** Holds all waiting deliveries of a disabled subscription. */
  hold(subscriptionId: string): Promise<void>
  /**
   * Holds the subscription's deliveries if it is disabled. Queues its held deliveries again if it
   * is enabled. Repeats if the status changed in the meantime.
   */
  applyStatus(subscriptionId: string): Promise<void>
  /** Makes the deliveries match the status of their subscriptions, after a crash or a race. */
  reconcile(): Promise<void>
  heldCounts(subscriptionIds: string[]): Promise<Map<string, number>>
}

/**
 * When a subscription is enabled, the due times of its held deliveries are spread over a period, to
 * protect the destination. The period grows by this interval per delivery, up to `spreadMaxMs`.
 */
const spreadPerDeliveryMs = 10
const spreadMaxMs = 30_000

export function createDeliveryHolds(dependencies: {
  store: DeliveryHoldStore
  subscriptions: Pick<LeadSubscriptionStore, 'find'>
  /** Wakes waiting delivery workers. Called when a delivery may be due. */
  announce: () => void
  now: () => number
}): DeliveryHolds {
  const { store, subscriptions, announce, now } = dependencies

  async function release(subscriptionId: string) {
    const held = (await store.heldCounts([subscriptionId])).get(subscriptionId) ?? 0
    if (held === 0) return
    const spread = Math.min((held - 1) * spreadPerDeliveryMs, spreadMaxMs)
    await store.release(subscriptionId, new Date(now()), spread)
    announce()
  }

  async function withStatus(subscriptionIds: string[], status: 'enabled' | 'disabled') {
    if (subscriptionIds.length === 0) return []
    const found = await subscriptions.find(subscriptionIds)
    return found.filter((subscription) => subscription.status === status)
  }

  const hold = (subscriptionId: string) => store.hold(subscriptionId, new Date(now()))

  return {
    hold,

    async applyStatus(subscriptionId) {
      for (let applied: string | undefined; ; ) {
        const [subscription] = await subscriptions.find([subscriptionId])
        if (!subscription || subscription.status === applied) return
        applied = subscription.status
        await (applied === 'disabled' ? hold : release)(subscriptionId)
      }
    },

    heldCounts: store.heldCounts,

    async reconcile() {
      for (const { subscriptionId } of await withStatus(await store.waiting(), 'disabled')) await hold(subscriptionId)
      for (const { subscriptionId } of await withStatus(await store.holding(), 'enabled')) await release(subscriptionId)
    },
  }
}

export interface SubscriptionDisabling {
  /**
   * Handles answers that indicate a fault of the subscription, such as 401 or 410. Disables the
   * subscription if the fault requires it. A fault stays in the document of its delivery until it
   * has been handled.
   */
  apply(faults: PendingFault[]): Promise<void>
  /**
   * Handles the faults that are still in documents of deliveries, for example because a process
   * crashed.
   */
  applyPending(): Promise<void>
}

/**
 * Number of consecutive 404 answers after which a subscription is disabled (contract, section 5).
 */
const notFoundMax = 5
const batch = 100

export function createSubscriptionDisabling(dependencies: {
  store: Pick<DeliveryHoldStore, 'pendingFaults' | 'removeFault'>
  subscriptions: Pick<LeadSubscriptionStore, 'disable' | 'countNotFound'>
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
    const reason = await disablingReason(subscriptionId, attemptId, kind, sentAt)
    if (reason !== undefined) {
      const entry = {
        at: new Date(now()),
        actor: 'service',
        action: 'disabled' as const,
        attemptId,
        disabledReason: reason,
      }
      if (await subscriptions.disable(subscriptionId, reason, entry, { sentAt })) await holds.hold(subscriptionId)
    }
    // Notifies the other cores even if the subscription was already disabled. The process that
    // disabled it may have crashed before it notified them.
    await liveSubscriptions.changed(subscriptionId)
    await store.removeFault({ deliveryId, attemptId })
  }

  async function disablingReason(
    subscriptionId: string,
    attemptId: string,
    kind: SubscriptionFault,
    sentAt: Date,
  ): Promise<DisabledReason | undefined> {
    if (kind !== 'not_found') return kind
    return (await subscriptions.countNotFound(subscriptionId, attemptId, sentAt)) >= notFoundMax ? 'gone' : undefined
  }

  return {
    async apply(faults) {
      for (const fault of faults) await applyOne(fault)
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
