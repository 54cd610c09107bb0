import type { DeliveryHoldStore, PendingVerdict } from './delivery-hold-store.ts'
import type { DeliveryHolds } from './delivery-holds.ts'
import type { Verdict } from './delivery-outcomes.ts'
import type { DisabledReason, LeadSubscriptionStore } from './lead-subscription-store.ts'
import type { LiveSubscriptions } from './live-subscriptions.ts'

export interface DeliveryVerdicts {
  /** Acts on answers that concern the subscription itself. Each is kept with its delivery until that is done. */
  execute(verdicts: PendingVerdict[]): Promise<void>
  /** Acts on those whose process died before it could. */
  executeForgotten(): Promise<void>
}

/** So many answers with 404 in a row disable a subscription (contract, section 5). */
const notFoundMax = 5
const batch = 100

export function createDeliveryVerdicts(dependencies: {
  store: Pick<DeliveryHoldStore, 'verdicts' | 'verdictDone'>
  subscriptions: Pick<LeadSubscriptionStore, 'disable' | 'countNotFound'>
  liveSubscriptions: Pick<LiveSubscriptions, 'changed'>
  holds: Pick<DeliveryHolds, 'hold'>
  now: () => number
}): DeliveryVerdicts {
  const { store, subscriptions, liveSubscriptions, holds, now } = dependencies

  /** Doing it twice comes to the same: what came before the subscription was set up anew counts no more. */
  async function executeOne({ subscriptionId, deliveryId, attemptId, kind, sentAt }: PendingVerdict) {
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
    // Also where it was disabled before: who did so may have died before it could tell the others.
    await liveSubscriptions.changed(subscriptionId)
    await store.verdictDone({ deliveryId, attemptId })
  }

  async function disablingReason(
    subscriptionId: string,
    attemptId: string,
    kind: Verdict,
    sentAt: Date,
  ): Promise<DisabledReason | undefined> {
    if (kind !== 'not_found') return kind
    return (await subscriptions.countNotFound(subscriptionId, attemptId, sentAt)) >= notFoundMax ? 'gone' : undefined
  }

  return {
    async execute(verdicts) {
      for (const verdict of verdicts) await executeOne(verdict)
    },

    async executeForgotten() {
      for (;;) {
        const forgotten = await store.verdicts(batch)
        for (const verdict of forgotten) await executeOne(verdict)
        if (forgotten.length < batch) return
      }
    },
  }
}
