import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { invalid, ServiceError } from '../errors.ts'
import type { Idempotency, Repeatable } from '../idempotency/idempotency.ts'
import { field, oneOf, validate } from '../rules.ts'
import type { ConsentDecision, Session, Visitor, VisitorCredentials } from '../sessions/model.ts'
import type { Directory, VisitorAccess } from '../sessions/visitor-access.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { Installation } from '../workspaces/model.ts'
import type { ConsentStore } from './consent-store.ts'

/**
 * Records visitors' decisions on the consent policy of an installation, and refuses requests
 * without the required consent (contract, section 3).
 */
export interface Consents {
  /**
   * Stores the visitor's decision for all live sessions of the same browser or verified subject on
   * the installation. Errors: those of VisitorAccess.authorize and of Idempotency.once,
   * `ValidationFailed` if `policyVersion` is not the current version of the policy.
   */
  record(request: {
    credentials: VisitorCredentials
    policyVersion: string
    decision: ConsentDecision['decision']
    idempotencyKey: string
  }): Promise<Repeatable<ConsentDecision>>
  /**
   * Throws `ConsentRequired` if the installation requires consent that the visitor has not granted.
   * `isRepeated` returns whether the operation was accepted before; a repeat is never refused.
   */
  require(visitor: Visitor, isRepeated: () => Promise<boolean>): Promise<void>
  /**
   * Gives a new session the visitor's latest decision. Call after the session was inserted and
   * before its credentials are returned. A decision that is recorded at the same time reaches the
   * session either here or in `record`.
   */
  inherit(session: Session): Promise<void>
}

export function createConsents(dependencies: {
  store: ConsentStore
  directory: Directory
  access: VisitorAccess
  idempotency: Idempotency
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
  settings: { idempotencyRetention: number }
}): Consents {
  const { store, directory, access, idempotency, wakeups, settings } = dependencies

  async function presentPolicy(publicSiteKey: string, policyVersion: string) {
    const { policyUrl, policyVersion: present } = (await directory.installations.reload(publicSiteKey))?.consent ?? {}
    if (policyUrl === undefined || present !== policyVersion) throw invalid('/policyVersion', 'const')
    return { policyUrl, policyVersion }
  }

  return {
    async record({ credentials, policyVersion, decision, idempotencyKey }) {
      const { session } = await access.authorize(credentials)
      const { sessionId, publicSiteKey } = session
      validate(field('/decision', decision, oneOf<ConsentDecision['decision']>('granted', 'denied')))
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions/consent', sessionId],
        sessionId,
        key: idempotencyKey,
        input: { policyVersion, decision },
        keptFor: settings.idempotencyRetention,
        async run(operation, decidedAt): Promise<ConsentDecision> {
          const policy = await presentPolicy(publicSiteKey, policyVersion)
          const current = await access.live(sessionId)
          const decided = { decision, ...policy, decidedAt }
          const others = await store.others(current)
          return wakeups.changing([sessionId, ...others], async () => {
            if (!(await store.add(sessionId, { ...decided, operation }))) await access.rejectEnded(sessionId)
            const all = await store.addToOthers(current, { ...decided, operation })
            // Sessions that began after the first read.
            await wakeups.stateChanged(...all.filter((id) => !others.includes(id)))
            return decided
          })
        },
      })
      return { content: result, replayed }
    },

    async require({ session, installation }, isRepeated) {
      if (hasConsented(session, installation)) return
      // The cached state may be older than a decision that another core has stored.
      const [fresh, site] = await Promise.all([
        directory.sessions.reload(session.sessionId),
        directory.installations.reload(installation.publicSiteKey),
      ])
      if (fresh && site && hasConsented(fresh, site)) return
      if (!(await isRepeated())) throw new ServiceError(ErrorCode.CONSENT_REQUIRED)
    },

    async inherit(session) {
      const latest = await store.latestOf(session)
      if (latest) await store.add(session.sessionId, latest)
    },
  }
}

/** Returns the visitor's latest decision, which may be about an earlier version of the policy. */
export function latestConsent({ consents }: Pick<Session, 'consents'>): ConsentDecision | undefined {
  return consents?.at(-1)
}

function hasConsented(session: Session, { consent }: Pick<Installation, 'consent'>): boolean {
  if (!consent?.required) return true
  const latest = latestConsent(session)
  return latest?.decision === 'granted' && latest.policyVersion === consent.policyVersion
}
