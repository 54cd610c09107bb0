import type { DeliveryQueue, TakenDelivery } from '../delivery-stores/delivery-queue-store.ts'
import { type DeliverySuppressionStore, suppressedOutcome } from '../delivery-stores/delivery-suppression-store.ts'
import type { Settlement } from '../delivery-stores/model.ts'
import type { LeadStore } from '../leads/lead-store.ts'
import type { Suppressions } from '../leads/suppressions.ts'
import type { CoreMetrics } from '../metrics.ts'

const batch = 500

/**
 * Returns a function that ends the waiting and held deliveries of the leads with these contact ids.
 * Repeating the call is safe.
 */
export function createDeliveryEnding(dependencies: {
  store: DeliverySuppressionStore
  leads: Pick<LeadStore, 'idsByContacts'>
  metrics: Pick<CoreMetrics, 'attempts'>
  settings: { retentionDays: number }
  now: () => number
}): (contactIds: string[]) => Promise<void> {
  const { store, leads, metrics, settings, now } = dependencies

  return async (contactIds) => {
    for (let after = ''; ; ) {
      const leadIds = await leads.idsByContacts(contactIds, after, batch)
      if (leadIds.length === 0) return
      after = leadIds.at(-1)!
      const at = new Date(now())
      const ended = await store.end(leadIds, at, new Date(at.getTime() + settings.retentionDays * 86_400_000))
      metrics.attempts.inc({ status: 'failed', response_class: 'suppressed' }, ended)
    }
  }
}

/**
 * Returns a function that ends claimed deliveries of suppressed people and returns the other
 * deliveries. So nothing is sent to a person who was suppressed after the lead was captured.
 */
export function createSuppressionGate(dependencies: {
  queue: Pick<DeliveryQueue, 'settle'>
  leads: Pick<LeadStore, 'findMany'>
  suppressions: Pick<Suppressions, 'hasAny' | 'suppressedLeads'>
  metrics: Pick<CoreMetrics, 'attempts'>
  settings: { retentionDays: number }
}) {
  const { queue, leads, suppressions, metrics, settings } = dependencies

  return async (taken: TakenDelivery[], claimId: string, at: Date): Promise<TakenDelivery[]> => {
    if (!(await suppressions.hasAny(taken.map(({ workspaceId }) => workspaceId)))) return taken
    const found = await leads.findMany([...new Set(taken.flatMap(({ leadId }) => leadId || []))])
    const suppressed = await suppressions.suppressedLeads(found)
    if (suppressed.size === 0) return taken
    const deleteAt = new Date(at.getTime() + settings.retentionDays * 86_400_000)
    const isSuppressed = ({ leadId = '' }: TakenDelivery) => suppressed.has(leadId)
    const ended = taken.filter(isSuppressed)
    await queue.settle(
      ended.map(({ deliveryId, attempts }): Settlement => {
        const index = attempts.length - 1
        const outcome = { ...suppressedOutcome, claimId }
        return {
          kind: 'outcome',
          deliveryId,
          claimId,
          at,
          attemptId: attempts[index]!.attemptId,
          index,
          outcome,
          deleteAt,
        }
      }),
    )
    metrics.attempts.inc({ status: 'failed', response_class: 'suppressed' }, ended.length)
    return taken.filter((each) => !isSuppressed(each))
  }
}
