import type { Collection, Db } from 'mongodb'
import type { OperatorPresenceDocument } from '../availability/operator-presence.ts'
import type { NonceDocument } from '../identity/identity-store.ts'
import type { FollowerDocument } from '../log/follower-store.ts'
import type { SignInAttemptDocument } from '../operators/console-session-store.ts'
import type { PrivacyCollections } from '../privacy/visitor-data-store.ts'
import type { KeyDocument } from '../stored-key.ts'
import type { WakeupDocument } from '../wakeups/wakeup-store.ts'
import type { MigrationDocument } from './migrations.ts'

export interface Collections extends PrivacyCollections {
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
