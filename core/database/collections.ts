import type { Collection, Db, Document } from 'mongodb'
import type { OperatorPresenceDocument } from '../availability/operator-presence.ts'
import type { VisitorDocument } from '../bans/bans.ts'
import type { NetworkBanDocument } from '../bans/network-bans.ts'
import type { CommandDocument } from '../commands/model.ts'
import type { TypingTurn } from '../conversations/model.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import type { LeadSubscriptionDocument } from '../deliveries/subscription-model.ts'
import type { FeedEntryDocument } from '../feed/model.ts'
import type { IdempotencyDocument } from '../idempotency/idempotency.ts'
import type { NonceDocument } from '../identity/identity-assertions.ts'
import type { SubjectDocument } from '../identity/subjects.ts'
import type { LeadDocument, Suppression } from '../leads/model.ts'
import type { ConversationDocument } from '../log/conversation-store.ts'
import type { EventDocument } from '../log/event-store.ts'
import type { FollowerDocument } from '../log/log-follower.ts'
import type { ConsoleSessionDocument, SignInLinkDocument } from '../operators/console-sessions.ts'
import type { SignInAttempt } from '../operators/model.ts'
import type { PasskeyDocument } from '../operators/passkeys.ts'
import type { TeamDocument } from '../operators/teams.ts'
import type { PictureDocument } from '../pictures/pictures.ts'
import type { ErasureDocument, RemovalDocument } from '../privacy/removals.ts'
import type { SearchEntryDocument } from '../search/search-entry-store.ts'
import type { SessionDocument } from '../sessions/session-store.ts'
import type { KeyDocument } from '../stored-key.ts'
import type { WakeupDocument } from '../wakeups/wakeup-store.ts'
import type { PolicyChange } from '../workspaces/model.ts'
import type { TokenDocument } from '../workspaces/tokens.ts'
import type { ConnectionDocument, InstallationDocument, WorkspaceDocument } from '../workspaces/workspaces.ts'

export interface MigrationDocument {
  _id: number
  name: string
  expandedAt: Date
  contractedAt?: Date
  /** Older versions than the one that ran `contract` cannot use the data. */
  version?: string
}

/** Stands for the type of the documents of a collection. */
const of = <D extends Document>() => undefined as unknown as D

const documents = {
  workspaces: of<WorkspaceDocument>(),
  connections: of<ConnectionDocument>(),
  installations: of<InstallationDocument>(),
  sessions: of<SessionDocument>(),
  visitors: of<VisitorDocument>(),
  subjects: of<SubjectDocument>(),
  nonces: of<NonceDocument>(),
  conversations: of<ConversationDocument>(),
  events: of<EventDocument>(),
  idempotency: of<IdempotencyDocument>(),
  commands: of<CommandDocument>(),
  leads: of<LeadDocument>(),
  leadSubscriptions: of<LeadSubscriptionDocument>(),
  deliveries: of<DeliveryDocument>(),
  typing: of<TypingTurn>(),
  wakeups: of<WakeupDocument>(),
  erasures: of<ErasureDocument>(),
  removals: of<RemovalDocument>(),
  keys: of<KeyDocument>(),
  operatorPresence: of<OperatorPresenceDocument>(),
  consoleSessions: of<ConsoleSessionDocument>(),
  signInLinks: of<SignInLinkDocument>(),
  signInAttempts: of<SignInAttempt>(),
  teams: of<TeamDocument>(),
  passkeys: of<PasskeyDocument>(),
  networkBans: of<NetworkBanDocument>(),
  suppressions: of<Suppression>(),
  searchEntries: of<SearchEntryDocument>(),
  followers: of<FollowerDocument>(),
  feedEntries: of<FeedEntryDocument>(),
  pictures: of<PictureDocument>(),
  policyChanges: of<PolicyChange>(),
  tokens: of<TokenDocument>(),
  migrations: of<MigrationDocument>(),
}

export type Collections = { [Name in keyof typeof documents]: Collection<(typeof documents)[Name]> }

export const collectionsOf = (db: Db) =>
  Object.fromEntries(Object.keys(documents).map((name) => [name, db.collection(name)])) as unknown as Collections
