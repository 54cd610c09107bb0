import type { Logger } from 'pino'
import type { DeliveryIntake } from '../deliveries/delivery-intake.ts'
import type { LeadSubscriptionStore } from '../deliveries/lead-subscription-store.ts'
import type { LiveSubscriptions } from '../deliveries/live-subscriptions.ts'
import { newDelivery } from '../deliveries/new-delivery.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import type { Lead, LeadStore } from './lead-store.ts'

export interface LeadFanOut {
  /** The automatic subscriptions to store with a new lead, so that a crash loses none. */
  plan(workspaceId: string): Promise<Pick<Lead, 'fanOut'>>
  /** Creates the deliveries of a lead. Never fails: `finish` creates what is missing. */
  send(lead: Lead): Promise<void>
  /** Creates the deliveries that crashed processes left out. */
  finish(): Promise<void>
}

/** After this time in milliseconds, the process that captured a lead counts as dead. */
const deadAfterMs = 5000
const batch = 100

/**
 * Automatic deliveries. A lead is stored together with its targets. Then its deliveries are
 * created, each at most once across repeats. Then the targets are removed from the lead.
 */
export function createLeadFanOut(dependencies: {
  leads: Pick<LeadStore, 'pendingFanOut' | 'markFannedOut'>
  intake: DeliveryIntake
  subscriptions: Pick<LeadSubscriptionStore, 'automatic'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find'>
  logger: Logger
  settings: { bodyMaxBytes: number; retentionDays: number }
  now: () => number
}): LeadFanOut {
  const { leads, intake, subscriptions, liveSubscriptions, logger, settings, now } = dependencies

  async function createDeliveries(lead: Lead) {
    if (!lead.fanOut) return
    const found = await Promise.all(lead.fanOut.subscriptionIds.map(liveSubscriptions.find))
    const at = new Date(now())
    await Promise.all(
      found.map((known) => {
        if (!known) return undefined
        const { subscription } = known
        const key = `${lead.workspaceId} automatic ${lead.leadId} ${subscription.subscriptionId}`
        const operation = { key, inputHash: hashInput({ key }) }
        const { isTooLarge: _, ...delivery } = newDelivery({ lead, subscription, operation, at, settings })
        return intake.add(delivery, known)
      }),
    )
    await leads.markFannedOut(lead.leadId)
  }

  return {
    async plan(workspaceId) {
      const automatic = await subscriptions.automatic(workspaceId)
      if (automatic.length === 0) return {}
      return {
        fanOut: {
          subscriptionIds: automatic.map(({ subscriptionId }) => subscriptionId),
          since: new Date(now()),
        },
      }
    },

    send: (lead) =>
      createDeliveries(lead).catch((error: Error) =>
        logger.warn({ reason: error.name }, 'lead fan-out failed; will retry'),
      ),

    async finish() {
      for (;;) {
        const found = await leads.pendingFanOut(new Date(now() - deadAfterMs), batch)
        // A failing lead must not block those after it.
        const failures: unknown[] = []
        for (const lead of found) await createDeliveries(lead).catch((error: unknown) => failures.push(error))
        if (failures.length > 0) throw failures[0]
        if (found.length < batch) return
      }
    },
  }
}
