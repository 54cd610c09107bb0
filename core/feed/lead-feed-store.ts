import type { Collection } from 'mongodb'
import type { DeliveryDocument } from '../delivery-stores/delivery-store.ts'
import type { LeadDocument } from '../leads/lead-store.ts'

export type UnannouncedLead = Pick<
  LeadDocument,
  '_id' | 'workspaceId' | 'createdAt' | 'conversationId' | 'formSubmissionId' | 'sessionId' | 'erasing'
>
export type UnannouncedDelivery = Omit<DeliveryDocument, 'body'>

/**
 * Finds the leads and deliveries whose last change has no entry yet. The write that changes them
 * sets `unannounced`, so a crash delays the entry and never loses it.
 */
export interface LeadFeedStore {
  leads(limit: number): Promise<UnannouncedLead[]>
  /** Returns those of these leads that are not announced. */
  leadsOf(leadIds: string[]): Promise<UnannouncedLead[]>
  markLeads(leadIds: string[]): Promise<void>
  deliveries(limit: number): Promise<UnannouncedDelivery[]>
  /** Stores what was announced, unless a delivery has changed since it was read. */
  markDeliveries(announced: { read: UnannouncedDelivery; handoff: DeliveryDocument['handoff'] }[]): Promise<void>
}

export function createLeadFeedStore({
  leads,
  deliveries,
}: {
  leads: Collection<LeadDocument>
  deliveries: Collection<DeliveryDocument>
}): LeadFeedStore {
  const unannounced = { unannounced: true } as const
  const committed = { readConcern: { level: 'majority' } } as const
  const projection = { workspaceId: 1, createdAt: 1, conversationId: 1, formSubmissionId: 1, sessionId: 1, erasing: 1 }
  const leadFields = { ...committed, projection }

  return {
    leads: (limit) => leads.find(unannounced, leadFields).limit(limit).toArray(),

    leadsOf: (leadIds) => leads.find({ _id: { $in: leadIds }, ...unannounced }, leadFields).toArray(),

    async markLeads(leadIds) {
      if (leadIds.length > 0) await leads.updateMany({ _id: { $in: leadIds } }, { $unset: { unannounced: '' } })
    },

    deliveries: (limit) =>
      deliveries
        .find(unannounced, { ...committed, projection: { body: 0 } })
        .limit(limit)
        .toArray(),

    async markDeliveries(announced) {
      if (announced.length === 0) return
      // Equal changes share one write. A write costs the database several times as much as one more
      // document in the same write.
      const equal = Map.groupBy(announced, ({ read, handoff }) =>
        [read.status, read.attempts.length, handoff?.outcome, handoff?.workflowId].join(' '),
      )
      await deliveries.bulkWrite(
        [...equal.values()].map((group) => {
          const [{ read, handoff }] = group as [(typeof announced)[number]]
          const { status, attempts } = read
          return {
            updateMany: {
              filter: {
                _id: { $in: group.map((each) => each.read._id) },
                status,
                attempts: { $size: attempts.length },
              },
              update: {
                $set: { announcedAttempts: attempts.length, ...(handoff && { handoff }) },
                $unset: { unannounced: '' as const },
              },
            },
          }
        }),
        { ordered: false },
      )
    },
  }
}
