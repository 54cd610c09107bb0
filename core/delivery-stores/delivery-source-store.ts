import type { AnyBulkWriteOperation, Collection, Filter } from 'mongodb'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { LeadDocument } from '../leads/lead-store.ts'
import type { EventDocument } from '../log/event-store.ts'
import { bytesOf } from './delivery-queue-store.ts'
import type { DeliveryDocument } from './delivery-store.ts'
import type { Delivery } from './model.ts'

/** Conversations and leads that deliveries are about, or one message that they carry. */
export type DeliveriesOf =
  | { conversationIds: string[]; leadIds: string[] }
  | { conversationId: string; messageSequence: number }

/** A delivery that a worker has. */
export interface HandedDelivery {
  deliveryId: string
  subscriptionId: string
  claimId: string
}

type About = Pick<Delivery, 'deliveryId' | 'leadId' | 'conversationId' | 'messageSequence'>

const stateOnly = { projection: { erasing: 1, conversationId: 1 } } as const
const idsIn = (ids: (string | undefined)[]) => [...new Set(ids.filter((id) => id !== undefined))]

/** Reads what deliveries are about, and removes the text of messages from deliveries. */
export type DeliverySourceStore = ReturnType<typeof createDeliverySourceStore>

export function createDeliverySourceStore({
  deliveries,
  events,
  conversations,
  leads,
}: {
  deliveries: Collection<DeliveryDocument>
  events: Collection<EventDocument>
  conversations: Collection<ConversationDocument>
  leads: Collection<LeadDocument>
}) {
  const about = (of: DeliveriesOf): Filter<DeliveryDocument> =>
    'messageSequence' in of
      ? of
      : { $or: [{ conversationId: { $in: of.conversationIds } }, { leadId: { $in: of.leadIds } }] }

  /** Returns a check that is true for deliveries whose conversation or lead was removed, or belongs to an erased visitor. */
  async function removals(found: About[]): Promise<(about: About) => boolean> {
    const leadIds = idsIn(found.map(({ leadId }) => leadId))
    const theirLeads = leadIds.length === 0 ? [] : await leads.find({ _id: { $in: leadIds } }, stateOnly).toArray()
    const conversationIds = idsIn([...found, ...theirLeads].map(({ conversationId }) => conversationId))
    const theirConversations =
      conversationIds.length === 0
        ? []
        : await conversations.find({ _id: { $in: conversationIds } }, stateOnly).toArray()
    const states = new Map([...theirLeads, ...theirConversations].map((each) => [each._id, each.erasing ?? 'visible']))
    const conversationOf = new Map(theirLeads.map(({ _id, conversationId = '' }) => [_id, conversationId]))
    const isGone = (id: string | undefined) => id !== undefined && (states.get(id) ?? true) === true
    return ({ leadId, conversationId }) =>
      isGone(leadId) || isGone(conversationId) || states.get(conversationOf.get(leadId ?? '') ?? '') === true
  }

  /** Returns the times of the withdrawals of messages, by conversation and sequence. */
  async function withdrawals(found: About[]): Promise<Map<string, Date>> {
    const carrying = found.filter(({ messageSequence }) => messageSequence !== undefined)
    if (carrying.length === 0) return new Map()
    const byConversation = Map.groupBy(carrying, ({ conversationId = '' }) => conversationId)
    const places = [...byConversation].map(([conversationId, theirs]) => ({
      conversationId,
      sequence: { $in: theirs.map(({ messageSequence = 0 }) => messageSequence) },
    }))
    const withdrawn = await events
      .find(
        { $or: places, 'message.redactedAt': { $exists: true } },
        { projection: { conversationId: 1, sequence: 1, 'message.redactedAt': 1 } },
      )
      .toArray()
    return new Map(withdrawn.map((event) => [`${event.conversationId} ${event.sequence}`, event.message!.redactedAt!]))
  }

  return {
    /**
     * Returns which deliveries are about a lead or a conversation that was removed, or whose visitor is
     * being erased. Also returns which carry a withdrawn message.
     */
    async statesOf(found: About[]): Promise<{ removed: Set<string>; withdrawn: Map<string, Date> }> {
      const [isRemoved, times] = await Promise.all([removals(found), withdrawals(found)])
      return {
        removed: new Set(found.filter(isRemoved).map(({ deliveryId }) => deliveryId)),
        withdrawn: new Map(
          found.flatMap(({ deliveryId, conversationId, messageSequence }) => {
            const at = times.get(`${conversationId} ${messageSequence}`)
            return at ? [[deliveryId, at] as const] : []
          }),
        ),
      }
    },

    /**
     * Removes the text of a message from the deliveries that carry it: from their bodies, and from the
     * answers of receivers, which may quote it. Answers that are recorded later are stored without
     * their text.
     */
    async withdraw(of: DeliveriesOf, at: Date, withoutText: (body: Uint8Array, at: Date) => Uint8Array): Promise<void> {
      const theirs = about(of)
      await deliveries.updateMany(theirs, {
        $set: { withdrawnAt: at },
        $unset: { 'attempts.$[].outcome.responseText': '' },
      })
      const isKept = { body: { $exists: true } }
      const kept = await deliveries.find({ ...theirs, ...isKept }, { projection: { body: 1 } }).toArray()
      if (kept.length === 0) return
      await deliveries.bulkWrite(
        kept.map(
          ({ _id, body }): AnyBulkWriteOperation<DeliveryDocument> => ({
            updateOne: { filter: { _id, ...isKept }, update: { $set: { body: withoutText(bytesOf(body), at) } } },
          }),
        ),
      )
    },

    /** Returns the deliveries that workers have. */
    async handed(of: DeliveriesOf): Promise<HandedDelivery[]> {
      const found = await deliveries
        .find({ ...about(of), status: 'sending' }, { projection: { subscriptionId: 1, claim: 1 } })
        .toArray()
      return found.map(({ _id, subscriptionId, claim }) => ({
        deliveryId: _id,
        subscriptionId,
        claimId: claim?.claimId ?? '',
      }))
    },

    /** Returns whether a worker has one of the deliveries still, under the same claim. */
    async isHanded(handed: HandedDelivery[]): Promise<boolean> {
      const claims = handed.map(({ deliveryId, claimId }) => ({ _id: deliveryId, 'claim.claimId': claimId }))
      return (await deliveries.findOne({ status: 'sending', $or: claims }, { projection: { _id: 1 } })) !== null
    },
  }
}
