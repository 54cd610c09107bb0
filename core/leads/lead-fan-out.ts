import type { Logger } from 'pino'
import type { DeliveryIntake } from '../deliveries/delivery-intake.ts'
import type { LeadSubscriptionStore } from '../deliveries/lead-subscription-store.ts'
import type { LiveSubscriptions } from '../deliveries/live-subscriptions.ts'
import { newDelivery } from '../deliveries/new-delivery.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import type { Lead, LeadStore } from './lead-store.ts'

export interface LeadFanOut {
  /** What a lead that is about to be kept must say of itself, so that no automatic subscription is forgotten. */
  plan(workspaceId: string): Promise<Pick<Lead, 'fanOut'>>
  /** Makes the deliveries that the lead names. Never fails: what it could not do now, `finish` does. */
  send(lead: Lead): Promise<void>
  /** Makes those whose process died before it could. */
  finish(): Promise<void>
}

/** After this long a capture is taken to be dead, in milliseconds. */
const deadAfterMs = 5000
const batch = 100

/**
 * Automatic deliveries. The lead says where it has to go in the same write that keeps it; then the deliveries are made, each
 * at most once however often that is tried; then the lead forgets it.
 */
export function createLeadFanOut(dependencies: {
  leads: Pick<LeadStore, 'notSentOn' | 'sentOn'>
  intake: DeliveryIntake
  subscriptions: Pick<LeadSubscriptionStore, 'automatic'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find'>
  logger: Logger
  settings: { bodyMaxBytes: number; retentionDays: number }
  now: () => number
}): LeadFanOut {
  const { leads, intake, subscriptions, liveSubscriptions, logger, settings, now } = dependencies

  async function sendNow(lead: Lead) {
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
    await leads.sentOn(lead.leadId)
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
      sendNow(lead).catch((error: Error) =>
        logger.warn({ reason: error.name }, 'lead not sent on, trying again later'),
      ),

    async finish() {
      for (;;) {
        const found = await leads.notSentOn(new Date(now() - deadAfterMs), batch)
        // One that cannot be sent on must not keep back those behind it.
        const failures: unknown[] = []
        for (const lead of found) await sendNow(lead).catch((error: unknown) => failures.push(error))
        if (failures.length > 0) throw failures[0]
        if (found.length < batch) return
      }
    },
  }
}
