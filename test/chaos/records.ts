import type { Db } from 'mongodb'
import type { DeliveryDocument } from '../../core/deliveries/model.ts'
import type { LeadSubscriptionDocument } from '../../core/deliveries/subscription-model.ts'
import type { LeadDocument } from '../../core/leads/model.ts'
import type { EventDocument } from '../../core/log/event-store.ts'
import type { Records } from './history.ts'

/** Reads the final state directly from the database, not through the service. */
export async function readRecords(db: Db, workspaceId: string): Promise<Records> {
  const [events, leads, subscriptions, deliveries] = await Promise.all([
    db.collection<EventDocument>('events').find().sort({ conversationId: 1, sequence: 1 }).toArray(),
    db.collection<LeadDocument>('leads').distinct('_id', { workspaceId }),
    db.collection<LeadSubscriptionDocument>('leadSubscriptions').distinct('_id', { workspaceId }),
    db.collection<DeliveryDocument>('deliveries').find({ workspaceId }).toArray(),
  ])
  return {
    events: events.map(({ conversationId, sequence, type, sessionId, transient, message, operationKey }) => ({
      conversationId,
      sequence,
      type,
      sessionId,
      transient: transient === true,
      // The end of a message that grew repeats the message.
      ...(message &&
        type !== 'message.completed' && {
          messageId: message.messageId,
          operation: operationKey?.split(' ').at(-1) ?? '',
        }),
    })),
    leads: leads.map(String),
    subscriptions: subscriptions.map(String),
    deliveries: deliveries.map(({ _id, leadId = '', subscriptionId, status, attempts }) => ({
      deliveryId: _id,
      leadId,
      subscriptionId,
      status,
      claims: attempts.flatMap(({ outcome }) => outcome?.claimId ?? []),
    })),
  }
}
