import type { Collection, Db } from 'mongodb'
import type { OperatorPresenceDocument } from '../availability/operator-presence.ts'
import type { VisitorDocument } from '../bans/bans.ts'
import type { NetworkBanDocument } from '../bans/network-bans.ts'
import type { CommandDocument } from '../commands/command-store.ts'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { TypingTurn } from '../conversations/model.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import type { LeadSubscriptionDocument } from '../deliveries/subscription-model.ts'
import type { FeedEntryDocument } from '../feed/model.ts'
import type { IdempotencyDocument } from '../idempotency/idempotency-store.ts'
import type { NonceDocument, SubjectDocument } from '../identity/identity-store.ts'
import type { LeadDocument, SuppressionDocument } from '../leads/model.ts'
import type { EventDocument } from '../log/event-store.ts'
import type { FollowerDocument } from '../log/log-follower.ts'
import type {
  ConsoleSessionDocument,
  SignInAttemptDocument,
  SignInLinkDocument,
} from '../operators/console-session-store.ts'
import type { PasskeyDocument } from '../operators/passkeys.ts'
import type { TeamDocument } from '../operators/teams.ts'
import type { PictureDocument } from '../pictures/model.ts'
import type { ErasureDocument, RemovalDocument } from '../privacy/removal-store.ts'
import type { SearchEntryDocument } from '../search/search-entry-store.ts'
import type { SessionDocument } from '../sessions/session-store.ts'
import type { KeyDocument } from '../stored-key.ts'
import type { WakeupDocument } from '../wakeups/wakeup-store.ts'
import type { PolicyChangeDocument } from '../workspaces/policy-changes.ts'
import type { TokenDocument } from '../workspaces/tokens.ts'
import type { ConnectionDocument, InstallationDocument, WorkspaceDocument } from '../workspaces/workspace-store.ts'
import type { MigrationDocument } from './migrations.ts'

export interface Collections {
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
  nonces: Collection<NonceDocument>
  wakeups: Collection<WakeupDocument>
  keys: Collection<KeyDocument>
  operatorPresence: Collection<OperatorPresenceDocument>
  signInAttempts: Collection<SignInAttemptDocument>
  followers: Collection<FollowerDocument>
  migrations: Collection<MigrationDocument>
}

export function collectionsOf(db: Db): Collections {
  return {
    workspaces: db.collection('workspaces'),
    connections: db.collection('connections'),
    installations: db.collection('installations'),
    sessions: db.collection('sessions'),
    visitors: db.collection('visitors'),
    subjects: db.collection('subjects'),
    nonces: db.collection('nonces'),
    conversations: db.collection('conversations'),
    events: db.collection('events'),
    idempotency: db.collection('idempotency'),
    commands: db.collection('commands'),
    leads: db.collection('leads'),
    leadSubscriptions: db.collection('leadSubscriptions'),
    deliveries: db.collection('deliveries'),
    typing: db.collection('typing'),
    wakeups: db.collection('wakeups'),
    erasures: db.collection('erasures'),
    removals: db.collection('removals'),
    keys: db.collection('keys'),
    operatorPresence: db.collection('operatorPresence'),
    consoleSessions: db.collection('consoleSessions'),
    signInLinks: db.collection('signInLinks'),
    signInAttempts: db.collection('signInAttempts'),
    teams: db.collection('teams'),
    passkeys: db.collection('passkeys'),
    networkBans: db.collection('networkBans'),
    suppressions: db.collection('suppressions'),
    searchEntries: db.collection('searchEntries'),
    followers: db.collection('followers'),
    feedEntries: db.collection('feedEntries'),
    pictures: db.collection('pictures'),
    policyChanges: db.collection('policyChanges'),
    tokens: db.collection('tokens'),
    migrations: db.collection('migrations'),
  }
}
