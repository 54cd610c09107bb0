import type { Collection } from 'mongodb'
import type { VisitorDocument } from '../bans/bans.ts'
import type { NetworkBanDocument } from '../bans/network-bans.ts'
import type { CommandDocument } from '../commands/command-store.ts'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { TypingTurn } from '../conversations/model.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import type { LeadSubscriptionDocument } from '../deliveries/subscription-model.ts'
import type { FeedEntryDocument } from '../feed/model.ts'
import type { IdempotencyDocument } from '../idempotency/idempotency-store.ts'
import type { SubjectDocument } from '../identity/identity-store.ts'
import type { LeadDocument, SuppressionDocument } from '../leads/model.ts'
import type { EventDocument } from '../log/event-store.ts'
import type { ConsoleSessionDocument, SignInLinkDocument } from '../operators/console-session-store.ts'
import type { PasskeyDocument, TeamDocument } from '../operators/team-store.ts'
import type { PictureDocument } from '../pictures/model.ts'
import type { SearchEntryDocument } from '../search/search-entry-store.ts'
import type { SessionDocument } from '../sessions/session-store.ts'
import type { PolicyChangeDocument } from '../workspaces/policy-changes.ts'
import type { TokenDocument } from '../workspaces/tokens.ts'
import type { ConnectionDocument, InstallationDocument, WorkspaceDocument } from '../workspaces/workspace-store.ts'
import type { VisitorTraces } from './model.ts'
import type { ErasureDocument, RemovalDocument } from './removal-store.ts'

/** The collections that have data of visitors, and those from which a deletion removes data. */
export interface PrivacyCollections {
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
  typing: Collection<TypingTurn>
  tokens: Collection<TokenDocument>
  pictures: Collection<PictureDocument>
  policyChanges: Collection<PolicyChangeDocument>
  searchEntries: Collection<SearchEntryDocument>
  feedEntries: Collection<FeedEntryDocument>
  workspaces: Collection<WorkspaceDocument>
  connections: Collection<ConnectionDocument>
  installations: Collection<InstallationDocument>
  suppressions: Collection<SuppressionDocument>
  consoleSessions: Collection<ConsoleSessionDocument>
  signInLinks: Collection<SignInLinkDocument>
  teams: Collection<TeamDocument>
  passkeys: Collection<PasskeyDocument>
  erasures: Collection<ErasureDocument>
  removals: Collection<RemovalDocument>
}

interface VisitorRecord {
  kind: 'session' | 'ban' | 'conversation' | 'event' | 'command' | 'lead' | 'delivery'
  [field: string]: unknown
}

export function createVisitorDataStore(collections: PrivacyCollections) {
  const { sessions, visitors, networkBans, conversations, events, commands, leads, deliveries } = collections

  return {
    /**
     * Reads the stored data without internal fields. A command with an uploaded screenshot also has
     * the file in the field `screenshot`.
     */
    async *read({ sessionIds, visitorIds, conversationIds, leadIds }: VisitorTraces): AsyncIterable<VisitorRecord> {
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
      for await (const command of commands.find({ sessionId: { $in: sessionIds } })) {
        const { _id, inputHash: _, operationId: __, uploads: ___, ...rest } = command
        yield { ...rest, kind: 'command', commandId: _id, command: command.kind }
      }
      for await (const lead of leads.find({ _id: { $in: leadIds } })) {
        const { _id, inputHash: _, operationKey: __, fanOut: ___, visitorIds: ____, unannounced: _____, ...rest } = lead
        yield { kind: 'lead', leadId: _id, ...rest }
      }
      for await (const delivery of deliveries.find({
        $or: [{ leadId: { $in: leadIds } }, { conversationId: { $in: conversationIds } }],
      })) {
        const { _id, eventType, leadId, conversationId, subscriptionId, status, attempts, createdAt } = delivery
        const about = { eventType, leadId, conversationId }
        yield { kind: 'delivery', deliveryId: _id, ...about, subscriptionId, status, attempts, createdAt }
      }
    },
  }
}

export type VisitorDataStore = ReturnType<typeof createVisitorDataStore>
