import type { DeliveryHoldStore, PendingFault } from './delivery-hold-store.ts'
import type { DeliveryHolds } from './delivery-holds.ts'
import type { SubscriptionFault } from './delivery-outcomes.ts'
import type { DisabledReason, LeadSubscriptionStore } from './lead-subscription-store.ts'
import type { LiveSubscriptions } from './live-subscriptions.ts'

export interface SubscriptionDisabling {
  /**
   * Disables subscriptions whose answers require it. Each fault stays stored with its delivery
   * until it is applied.
   */
  apply(faults: PendingFault[]): Promise<void>
  /** Applies stored faults whose process stopped before applying them. */
  applyPending(): Promise<void>
}

/** So many 404 answers in a row disable a subscription (contract, section 5). */
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

  /** Safe to repeat: faults from before the last change of the subscription do not count. */
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
    // Also if it was already disabled: the process that did so may have died before notifying the
    // other cores.
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
