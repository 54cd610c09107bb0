import type { CoreConfig } from '../config.ts'
import type { Idempotency } from '../idempotency.ts'
import { createIdentification, type Identification } from '../identity/identification.ts'
import { createIdentityAssertions } from '../identity/identity.ts'
import { createSubjects, type Subjects } from '../identity/subjects.ts'
import { createIdsKey } from '../keys/ids-key.ts'
import type { Keyring } from '../keys/keyring.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ReplayWindow } from '../log/replay-window.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { ConversationStore } from '../store/conversations.ts'
import type { Collections } from '../store/database.ts'
import type { EventStore } from '../store/events.ts'
import { createKeyStore } from '../store/keys.ts'
import { createNonceStore } from '../store/nonces.ts'
import type { SessionStore } from '../store/sessions.ts'
import { createSubjectStore } from '../store/subjects.ts'
import type { Directory } from '../workspaces/directory.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import type { Grants } from './grants.ts'
import { createRenewals, type Renewals } from './renewal.ts'
import { createSessionContents } from './session-content.ts'
import { createSessions, type Sessions } from './sessions.ts'
import type { VisitorAccess } from './visitor-access.ts'

/** What a visitor's session goes through. */
export interface SessionParts {
  sessions: Sessions
  renewals: Renewals
  identification: Identification
  subjects: Subjects
}

export interface SessionPartsDependencies {
  collections: Collections
  config: CoreConfig
  sessionStore: SessionStore
  conversations: ConversationStore
  events: EventStore
  replayWindow: ReplayWindow
  log: EventLog
  workspaces: Workspaces
  directory: Directory
  access: VisitorAccess
  grants: Grants
  keyring: Keyring
  secretBox: SecretBox
  idempotency: Idempotency
  wakeups: Wakeups
  now: () => number
}

export function createSessionParts({
  collections,
  config,
  sessionStore,
  replayWindow,
  workspaces,
  directory,
  grants,
  secretBox,
  ...given
}: SessionPartsDependencies): SessionParts {
  const { conversations, events, access, keyring, wakeups, now } = given
  const idsKey = createIdsKey({ store: createKeyStore(collections), secretBox, keyring, now })
  const parts = {
    ...given,
    store: sessionStore,
    contents: createSessionContents({ grants, conversations, events, replayWindow }),
    settings: {
      grantLifetime: config.GRANT_LIFETIME_SECONDS,
      sessionLifetime: config.SESSION_LIFETIME_SECONDS,
      creationRepeat: config.SESSION_CREATION_REPEAT_SECONDS,
      idempotencyRetention: config.IDEMPOTENCY_RETENTION_SECONDS,
      pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
    },
  }
  const subjects = createSubjects({
    store: createSubjectStore(collections),
    sessions: sessionStore,
    conversations,
    events,
    access,
    idsKey,
    wakeups,
  })
  const assertions = createIdentityAssertions({
    secretBox,
    now,
    settings: {
      assertionLifetime: config.IDENTITY_ASSERTION_LIFETIME_SECONDS,
      clockSkew: config.IDENTITY_CLOCK_SKEW_SECONDS,
      contextMaxKeys: config.IDENTITY_CONTEXT_MAX_KEYS,
      contextMaxBytes: config.IDENTITY_CONTEXT_MAX_BYTES,
    },
  })
  return {
    subjects,
    sessions: createSessions({ ...parts, idsKey, workspaces }),
    renewals: createRenewals({ ...parts, directory, grants }),
    identification: createIdentification({ ...parts, nonces: createNonceStore(collections), subjects, assertions }),
  }
}
