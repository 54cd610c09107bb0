import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import type { LiveSubscriptions } from '../destinations/live-subscriptions.ts'
import { coversLead, defaultPolicy } from '../destinations/policy-model.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import type { LeadStore } from '../leads/lead-store.ts'
import type { Lead, LeadFanOut } from '../leads/model.ts'
import type { Suppressions } from '../leads/suppressions.ts'
import type { DeliveryIntake } from './delivery-intake.ts'
import { leadContent, newDelivery } from './new-delivery.ts'

/**
 * Time in milliseconds after which another process completes the fan-out of a lead. The process
 * that captured the lead is then considered dead.
 */
const deadAfterMs = 5000
const batch = 100

/**
 * Creates the automatic deliveries of leads. A lead is stored together with the ids of its
 * subscriptions. Then one delivery per subscription is created; repeating this creates no
 * duplicates. Finally the ids are removed from the lead.
 */
export function createLeadFanOut(dependencies: {
  suppressions: Pick<Suppressions, 'suppressedLeads'>
  leads: Pick<LeadStore, 'pendingFanOut' | 'markFannedOut'>
  intake: DeliveryIntake
  subscriptions: Pick<LeadSubscriptionStore, 'automatic'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find'>
  bus: Bus
  logger: Logger
  settings: { bodyMaxBytes: number; retentionDays: number }
  now: () => number
}): LeadFanOut {
  const { suppressions, leads, intake, subscriptions, liveSubscriptions, bus, logger, settings, now } = dependencies

  async function createDeliveries(lead: Lead) {
    if (!lead.fanOut) return
    const found = await Promise.all(lead.fanOut.subscriptionIds.map(liveSubscriptions.find))
    const isSuppressed = (await suppressions.suppressedLeads([lead])).has(lead.leadId)
    const at = new Date(now())
    await Promise.all(
      found.map((known) => {
        if (!known) return undefined
        const { subscription } = known
        const key = `${lead.workspaceId} automatic ${lead.leadId} ${subscription.subscriptionId}`
        const operation = { key, inputHash: hashInput({ key }) }
        const { isTooLarge: _, ...delivery } = newDelivery({
          content: leadContent(lead, subscription),
          subscription,
          operation,
          at,
          settings,
          isSuppressed,
        })
        return intake.add(delivery, known, lead.conversationId)
      }),
    )
    await leads.markFannedOut(lead.leadId)
  }

  return {
    async plan(lead) {
      const covering = (await subscriptions.automatic(lead.workspaceId)).filter(({ policy = defaultPolicy }) => {
        return policy.types.includes('lead.ready-for-delivery') && coversLead(policy, lead)
      })
      if (covering.length === 0) return {}
      return {
        fanOut: {
          subscriptionIds: covering.map(({ subscriptionId }) => subscriptionId),
          since: new Date(now()),
        },
      }
    },

    send: (lead) =>
      createDeliveries(lead).catch((error: Error) => {
        logger.warn({ reason: error.name }, 'lead fan-out failed; will retry')
        bus.emit('due', 'finish lead fan-out', deadAfterMs)
      }),

    async finish() {
      for (;;) {
        const found = await leads.pendingFanOut(new Date(now() - deadAfterMs), batch)
        // A lead that fails must not block the leads after it.
        const failures: unknown[] = []
        for (const lead of found) await createDeliveries(lead).catch((error: unknown) => failures.push(error))
        if (failures.length > 0) throw failures[0]
        if (found.length < batch) return
      }
    },
  }
}
