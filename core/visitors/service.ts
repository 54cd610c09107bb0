import type { BanStore } from '../bans/ban-store.ts'
import { createBans } from '../bans/bans.ts'
import type { NetworkBanStore } from '../bans/network-ban-store.ts'
import { createNetworkBans } from '../bans/network-bans.ts'
import { createJob } from '../concurrency/job.ts'
import type { ConsentStore } from '../consents/consent-store.ts'
import { createConsents } from '../consents/consents.ts'
import { createObservations } from '../consents/observations.ts'
import type { Core } from '../core.ts'
import { createIdentification } from '../identity/identification.ts'
import { createIdentityAssertions } from '../identity/identity-assertions.ts'
import type { NonceStore, SubjectStore } from '../identity/identity-store.ts'
import { createSessionReplacements } from '../identity/session-replacements.ts'
import { createSubjects } from '../identity/subjects.ts'
import { createIdsKey } from '../keys/ids-key.ts'
import type { KeyStore } from '../keys/key-store.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogService } from '../log/service.ts'
import { grantsOf } from '../sessions/grants.ts'
import type { ConversationRecords } from '../sessions/model.ts'
import { createSessionCheck } from '../sessions/session-check.ts'
import { createSessionContents } from '../sessions/session-content.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { directoryOf, visitorAccessOf } from '../sessions/visitor-access.ts'
import { createVisitorIdentifier } from '../sessions/visitor-ids.ts'
import type { StreamService } from '../streams/service.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { createRenewals } from './renewal.ts'
import { createSessions } from './sessions.ts'

interface VisitorStores {
  sessions: SessionStore
  subjects: SubjectStore
  nonces: NonceStore
  consents: ConsentStore
  bans: BanStore
  networkBans: NetworkBanStore
  keys: KeyStore
  conversations: ConversationRecords
  events: EventStore
}

const checkEveryMs = 300
/** After this number of `checkSome` calls, each session with an open stream has been read once. */
const checkSteps = 50
const expiryEveryMs = 500

/** Tolerated clock difference of hosts that sign identity assertions. */
const assertionClockSkewSeconds = 30
/** Limits of the context in an identity assertion. */
const contextMaxKeys = 10
const contextMaxBytes = 1_024

export function createVisitorService(
  core: Core,
  stores: VisitorStores,
  { log, replayWindow, streamSubscriptions, wakeups }: LogService & StreamService & WakeupService,
  { workspaces }: WorkspaceService,
) {
  const { config, bus, history, plannedIds, secretBox, idempotency, logger, now } = core
  const { conversations, events } = stores
  const grants = grantsOf(core)
  // The caches must subscribe to the bus before the check of sessions, because the check of sessions
  // reads them.
  const directory = directoryOf(core)
  const access = visitorAccessOf(core)
  const idsKey = createIdsKey({ store: stores.keys, secretBox, now })
  const identifier = createVisitorIdentifier({ idsKey, listConnections: workspaces.listConnections })
  const sessionCheck = createSessionCheck({
    access,
    log,
    subscriptions: streamSubscriptions,
    bus,
    logger,
    now,
    checkSteps,
  })
  wakeups.settleWith(sessionCheck.settled)
  const shared = {
    store: stores.sessions,
    conversations,
    events,
    log,
    access,
    plannedIds,
    idempotency,
    wakeups,
    history,
    now,
    contents: createSessionContents({ grants, conversations, events, replayWindow }),
    settings: {
      grantLifetime: config.GRANT_LIFETIME_SECONDS,
      renewable: config.SESSION_RENEWABLE_SECONDS,
      sessionLifetime: config.SESSION_LIFETIME_SECONDS,
      creationRepeat: config.SESSION_CREATION_REPEAT_SECONDS,
      idempotencyRetention: config.IDEMPOTENCY_RETENTION_SECONDS,
      pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
    },
  }
  const subjects = createSubjects({
    store: stores.subjects,
    sessions: stores.sessions,
    conversations,
    events,
    identifier,
  })
  const assertions = createIdentityAssertions({
    secretBox,
    now,
    settings: {
      assertionLifetime: config.IDENTITY_ASSERTION_LIFETIME_SECONDS,
      clockSkew: assertionClockSkewSeconds,
      contextMaxKeys,
      contextMaxBytes,
    },
  })
  const networkBans = createNetworkBans({ store: stores.networkBans, idsKey, now })
  const bans = createBans({ store: stores.bans, sessions: stores.sessions, networkBans, identifier, wakeups, now })
  const consents = createConsents({ ...shared, store: stores.consents, directory })
  const observations = createObservations({ ...shared, consents })
  return {
    visitorAccess: access,
    consents,
    observations,
    idsKey,
    subjects,
    sessions: createSessions({
      ...shared,
      identifier,
      workspaces,
      directory,
      subjects,
      bans,
      consents,
      observations,
      networkBans,
    }),
    renewals: createRenewals({ ...shared, directory, grants, bans }),
    identification: createIdentification({
      ...shared,
      replacements: createSessionReplacements({ ...shared, subjects, bans, consents, observations }),
      grants,
      nonces: stores.nonces,
      subjects,
      bans,
      assertions,
    }),
    jobs: [
      createJob({ name: 'check of sessions', everyMs: checkEveryMs, run: sessionCheck.checkSome, logger }),
      createJob({ name: 'expiry of sessions', everyMs: expiryEveryMs, run: sessionCheck.checkDue, logger }),
    ],
  }
}

export type VisitorService = ReturnType<typeof createVisitorService>
