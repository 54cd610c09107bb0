import { createJob, type Job } from '../concurrency/job.ts'
import { createIdsKey } from '../keys/ids-key.ts'
import type { CoreKit } from '../kit.ts'
import type { LogService } from '../log/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { createGrants } from './grants.ts'
import { createIdentification, type Identification } from './identification.ts'
import { createIdentityAssertions } from './identity-assertions.ts'
import { createRenewals, type Renewals } from './renewal.ts'
import { createSessionContents } from './session-content.ts'
import { createSessionWatch } from './session-watch.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createSubjects, type Subjects } from './subjects.ts'
import { createVisitorAccess, type VisitorAccess } from './visitor-access.ts'

/** Sessions, grants and identity of visitors, and the end of their access. */
export interface VisitorService {
  visitorAccess: VisitorAccess
  sessions: Sessions
  renewals: Renewals
  identification: Identification
  subjects: Subjects
  jobs: Job[]
}

const checkEveryMs = 300
/** Number of runs in which every session with an open stream is read once. */
const checkSteps = 50
const expiryEveryMs = 500

export function createVisitorService(
  { config, stores, bus, keyring, secretBox, idempotency, logger, now }: CoreKit,
  { log, replayWindow, subscriptions, wakeups }: LogService,
  { workspaces, directory }: WorkspaceService,
): VisitorService {
  const { conversations, events } = stores
  const grants = createGrants(keyring)
  const access = createVisitorAccess({ directory, grants, now })
  const idsKey = createIdsKey({ store: stores.keys, secretBox, keyring, now })
  const sessionWatch = createSessionWatch({ access, log, subscriptions, bus, logger, now, checkSteps })
  const shared = {
    store: stores.sessions,
    conversations,
    events,
    log,
    access,
    keyring,
    idempotency,
    wakeups,
    now,
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
    store: stores.subjects,
    sessions: stores.sessions,
    conversations,
    events,
    idsKey,
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
    visitorAccess: access,
    subjects,
    sessions: createSessions({ ...shared, idsKey, workspaces, directory, subjects }),
    renewals: createRenewals({ ...shared, directory, grants }),
    identification: createIdentification({ ...shared, nonces: stores.nonces, subjects, assertions }),
    jobs: [
      createJob({ name: 'check of sessions', everyMs: checkEveryMs, run: sessionWatch.checkSome, logger }),
      createJob({ name: 'expiry of sessions', everyMs: expiryEveryMs, run: sessionWatch.checkDue, logger }),
    ],
  }
}
