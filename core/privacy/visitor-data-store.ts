import type { Collection } from 'mongodb'
import type { CommandDocument } from '../commands/command-store.ts'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { TypingDocument } from '../conversations/typing-store.ts'
import type { DeliveryDocument } from '../deliveries/delivery-store.ts'
import type { LeadSubscriptionDocument } from '../deliveries/lead-subscription-store.ts'
import type { IdempotencyDocument } from '../idempotency/idempotency-store.ts'
import type { LeadDocument } from '../leads/lead-store.ts'
import type { EventDocument } from '../log/event-store.ts'
import { entriesOf, type SearchEntryDocument } from '../search/search-entry-store.ts'
import type { VisitorDocument } from '../visitors/ban-store.ts'
import type { SubjectDocument } from '../visitors/identity-store.ts'
import type { NetworkBanDocument } from '../visitors/network-ban-store.ts'
import type { SessionDocument } from '../visitors/session-store.ts'
import type { PolicyChangeDocument } from '../workspaces/policy-change-store.ts'
import type { VisitorTraces } from './model.ts'

/** The collections that have data of visitors. */
export interface VisitorCollections {
  sessions: Collection<SessionDocument>
  visitors: Collection<VisitorDocument>
  networkBans: Collection<NetworkBanDocument>
  subjects: Collection<SubjectDocument>
  conversations: Collection<ConversationDocument>
  events: Collection<EventDocument>
  idempotency: Collection<IdempotencyDocument>
  commands: Collection<CommandDocument>
  leads: Collection<LeadDocument>
  leadSubscriptions: Collection<LeadSubscriptionDocument>
  deliveries: Collection<DeliveryDocument>
  typing: Collection<TypingDocument>
  policyChanges: Collection<PolicyChangeDocument>
  searchEntries: Collection<SearchEntryDocument>
}

interface VisitorRecord {
  kind: 'session' | 'ban' | 'conversation' | 'event' | 'command' | 'lead' | 'delivery'
  [field: string]: unknown
}

export interface VisitorDataStore {
  /**
   * Reads the stored data without internal fields. A command with an uploaded screenshot also has
   * the file in the field `screenshot`.
   */
  read(traces: VisitorTraces): AsyncIterable<VisitorRecord>
}

export function createVisitorDataStore(collections: VisitorCollections): VisitorDataStore {
  const { sessions, visitors, networkBans, conversations, events, commands, leads, deliveries } = collections

  return {
    async *read({ sessionIds, visitorIds, conversationIds, commandIds, leadIds }) {
      for await (const session of sessions.find({ _id: { $in: sessionIds } })) {
        const {
          _id,
          renewal: _,
          identity,
          successor: __,
          afterErasures: ___,
          joinedAfterErasures: ____,
          reviewAt: _____,
          postponedUntil: ______,
          linkedSubjectIds: _______,
          consents,
          ...rest
        } = session
        const { externalSubject, displayName, context, verifiedAt } = identity ?? {}
        yield {
          kind: 'session',
          sessionId: _id,
          ...rest,
          consents: consents?.map(({ operation: _, ...decision }) => decision),
          identity: identity && {
            externalSubject,
            displayName,
            verifiedAt,
            context: Object.fromEntries(context ?? []),
          },
        }
      }
      for await (const { _id, ...ban } of visitors.find({ _id: { $in: visitorIds }, bannedAt: { $exists: true } })) {
        yield { kind: 'ban', visitorId: _id, ...ban }
      }
      for await (const { network, bannedAt, endsAt } of networkBans.find({ visitorIds: { $in: visitorIds } })) {
        yield { kind: 'ban', network, bannedAt, endsAt }
      }
      for await (const document of conversations.find({ _id: { $in: conversationIds } })) {
        // Notes are internal to the workspace.
        const { _id, reviewAt: _, postponedUntil: __, notes: ___, ...rest } = document
        yield { kind: 'conversation', conversationId: _id, ...rest }
      }
      for (const conversationId of conversationIds) {
        for await (const event of events.find({ conversationId }).sort({ sequence: 1 })) {
          const { sequence, type, occurredAt, sessionId, message, currentState, data } = event
          yield { kind: 'event', conversationId, sequence, type, occurredAt, sessionId, message, currentState, data }
        }
      }
      for await (const command of commands.find({ _id: { $in: commandIds } })) {
        const { _id, inputHash: _, operationId: __, uploads: ___, ...rest } = command
        yield { ...rest, kind: 'command', commandId: _id, command: command.kind }
      }
      for await (const lead of leads.find({ _id: { $in: leadIds } })) {
        const { _id, inputHash: _, operationKey: __, fanOut: ___, visitorIds: ____, ...rest } = lead
        yield { kind: 'lead', leadId: _id, ...rest }
      }
      for await (const delivery of deliveries.find({ leadId: { $in: leadIds } })) {
        const { _id, leadId, subscriptionId, status, attempts, createdAt } = delivery
        yield { kind: 'delivery', deliveryId: _id, leadId, subscriptionId, status, attempts, createdAt }
      }
    },
  }
}

export interface VisitorRemoval {
  /** Hides the conversations from operators. */
  hideConversations(conversationIds: string[]): Promise<void>
  epochsOf(conversationIds: string[]): Promise<string[]>
  /** Prevents further uploads, so that the list of files is complete. */
  stopUploads(sessionIds: string[]): Promise<void>
  /**
   * Removes all data except files and wake-ups. If a call is interrupted, another call with the same traces
   * removes the rest.
   */
  remove(traces: VisitorTraces): Promise<void>
  /**
   * Removes the id of an erasure that is about to finish from sessions and verified visitors. Sessions and visitors
   * that began during the erasure store its id, so that the erasure skips them.
   */
  forgetErasure(erasureId: string, visitorIds: string[]): Promise<void>
}

/** Removes the references of lead subscriptions to the attempts of these deliveries. */
export async function removeAttemptReferences(
  leadSubscriptions: Collection<LeadSubscriptionDocument>,
  deliveries: Pick<DeliveryDocument, 'subscriptionId' | 'attempts'>[],
): Promise<void> {
  const attemptIds = deliveries.flatMap(({ attempts }) => attempts.map(({ attemptId }) => attemptId))
  await leadSubscriptions.updateMany(
    { _id: { $in: [...new Set(deliveries.map(({ subscriptionId }) => subscriptionId))] } },
    { $pull: { notFound: { $in: attemptIds } }, $unset: { 'audit.$[entry].attemptId': '' } },
    { arrayFilters: [{ 'entry.attemptId': { $in: attemptIds } }] },
  )
}

/** Removes a visitor's data from every collection. */
export function createVisitorRemoval(collections: VisitorCollections): VisitorRemoval {
  const { sessions, visitors, subjects, conversations, events, typing } = collections
  const { idempotency, commands, leads, leadSubscriptions, deliveries, policyChanges, searchEntries } = collections

  async function removeDeliveries(leadIds: string[]) {
    const found = await deliveries
      .find({ leadId: { $in: leadIds } }, { projection: { subscriptionId: 1, 'attempts.attemptId': 1 } })
      .toArray()
    if (found.length > 0) await removeAttemptReferences(leadSubscriptions, found)
    await deliveries.deleteMany({ leadId: { $in: leadIds } })
  }

  /**
   * Keeps the bans, because a banned visitor who returns must still be banned. Without its reason, a
   * ban has keyed hashes only.
   */
  async function removeVisitors({ visitorIds }: VisitorTraces) {
    const theirs = { _id: { $in: visitorIds } }
    await visitors.updateMany({ ...theirs, banReason: { $exists: true } }, { $unset: { banReason: '' } })
    await visitors.deleteMany({ ...theirs, bannedAt: { $exists: false } })
  }

  return {
    async hideConversations(conversationIds) {
      await conversations.updateMany({ _id: { $in: conversationIds } }, { $set: { erasing: true } })
    },

    epochsOf: (conversationIds) => conversations.distinct('epoch', { _id: { $in: conversationIds } }),

    async stopUploads(sessionIds) {
      await commands.updateMany({ sessionId: { $in: sessionIds } }, { $set: { state: 'cancelled' } })
    },

    async remove(traces) {
      const { sessionIds, conversationIds, commandIds, leadIds, visitorIds } = traces
      await removeDeliveries(leadIds)
      await leads.deleteMany({ _id: { $in: leadIds } })
      await commands.deleteMany({ _id: { $in: commandIds } })
      await idempotency.deleteMany({ sessionIds: { $in: sessionIds } })
      await typing.deleteMany({ conversationId: { $in: conversationIds } })
      await events.deleteMany({ conversationId: { $in: conversationIds } })
      await conversations.deleteMany({ _id: { $in: conversationIds } })
      await searchEntries.deleteMany({ _id: { $in: [...leadIds, ...sessionIds] } })
      for (const filter of entriesOf(conversationIds)) await searchEntries.deleteMany(filter)
      await subjects.deleteMany({ _id: { $in: visitorIds }, conversationId: { $in: conversationIds } })
      // The previous session in the same browser stays if it belongs to another person. Only its
      // reference to the removed session is removed.
      await sessions.updateMany(
        { visitorId: { $in: visitorIds }, 'successor.sessionId': { $in: sessionIds } },
        { $unset: { successor: '' } },
      )
      await policyChanges.updateMany({ target: { $in: sessionIds } }, { $unset: { target: '' } })
      await removeVisitors(traces)
      await sessions.deleteMany({ _id: { $in: sessionIds } })
    },

    async forgetErasure(erasureId, visitorIds) {
      const theirs = { $in: visitorIds }
      for (const field of ['afterErasures', 'joinedAfterErasures'])
        for (const visitor of ['visitorId', 'identity.subjectId'])
          await sessions.updateMany({ [visitor]: theirs, [field]: erasureId }, { $pull: { [field]: erasureId } })
      await subjects.updateMany({ _id: theirs }, { $pull: { afterErasures: erasureId } })
    },
  }
}
