import { createJobs } from '../concurrency/job.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure, ServiceError } from '../errors.ts'
import { createLeases, type Leased, whileHeld } from '../mongodb/leases.ts'
import { field, url, validate } from '../rules.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import {
  beginConsoleSession,
  type ConsoleSessionDocument,
  replacedIdOf,
  type SignedIn,
  takeAttempt,
} from './console-sessions.ts'
import { createIdentityProvider, type IdentityProvider, type SignInRequest } from './identity-provider.ts'
import { linkLifetimeMs, newSecret, type ProviderCheck, secretId, sessionLifetimeMs } from './model.ts'
import { keepProvidedMember } from './teams.ts'

const callbackPath = '/console/session/callback'
/**
 * Time after which claims are read again. A round of checks and a check in it take up to `leaseMs` each, so a
 * revoked scope stays effective for at most a minute.
 */
const recheckMs = 30_000
/** Maximum time of a check. Afterwards, another core may begin it again. */
const leaseMs = 15_000
/** Pause after a check that the provider did not answer. */
const retryMs = 5_000
/** Maximum number of concurrent checks of one core, so that slow answers delay no other checks. */
const checksMax = 16
/** Lifetime of a session whose claims cannot be read again. */
const uncheckedLifetimeMs = 3_600_000
const recheckEveryMs = 1_000

export const identityProviderOf = perCore(({ config, now }): IdentityProvider | undefined =>
  config.OIDC_ISSUER === '' ? undefined : createIdentityProvider(config, now),
)

function requireProvider(core: Core) {
  const provider = identityProviderOf(core)
  if (!provider) throw new ServiceError('NotFound')
  return provider
}

/**
 * Returns the URL for the sign-in and a new secret for the browser. Errors: `NotFound` without a provider,
 * `ServiceUnavailable`, `ValidationFailed`.
 */
export async function beginProviderSignIn(core: Core, origin: string, replacedSecret: string) {
  const found = requireProvider(core)
  validate(field('/origin', origin, url('http', 'https')))
  const [state, nonce, codeVerifier, browserSecret] = [newSecret(), newSecret(), newSecret(), newSecret()]
  const request: SignInRequest = { redirectUri: new URL(callbackPath, origin).href, state, nonce, codeVerifier }
  const signInUrl = await found.signInUrl(request)
  await core.db.signInAttempts.insertOne({
    _id: secretId(state),
    browserId: secretId(browserSecret),
    replacedId: replacedIdOf(replacedSecret),
    issuer: found.issuer,
    sealed: core.secretBox.seal(JSON.stringify(request)),
    expiresAt: dateOf(core, linkLifetimeMs),
  })
  return { url: signInUrl, browserSecret }
}

/**
 * Each sign-in finishes once, and only in the browser that began it. Errors: `Unauthenticated`,
 * `PermissionDenied` if the claims grant nothing, `ServiceUnavailable`.
 */
export async function finishProviderSignIn(
  core: Core,
  { origin, parameters, browserSecret }: { origin: string; parameters: string; browserSecret: string },
): Promise<SignedIn> {
  const found = requireProvider(core)
  const state = new URLSearchParams(parameters).get('state') ?? ''
  const attempt = await takeAttempt(core, secretId(state), secretId(browserSecret))
  // The code and its verifier belong to the issuer at which the sign-in began.
  if (!attempt || attempt.issuer !== found.issuer || attempt.sealed === undefined)
    throw new ServiceError('Unauthenticated')
  const request: SignInRequest = JSON.parse(core.secretBox.open(attempt.sealed))
  if (new URL(request.redirectUri).origin !== origin) throw new ServiceError('Unauthenticated')
  const { refreshToken, mail, ...identity } = await found.finish(request, parameters)
  const { workspaceId, operator: id, displayName: name } = identity
  await keepProvidedMember(core, workspaceId, { id, name, mail })
  const isChecked = refreshToken !== undefined
  return beginConsoleSession(
    core,
    {
      ...identity,
      method: 'provider',
      account: true,
      expiresAt: dateOf(core, isChecked ? sessionLifetimeMs : uncheckedLifetimeMs),
      provider: isChecked ? checkOf(core, found, refreshToken) : undefined,
    },
    attempt.replacedId,
  )
}

const checkOf = ({ secretBox, now }: Core, { issuer }: IdentityProvider, refreshToken: string): ProviderCheck => ({
  issuer,
  sealed: secretBox.seal(refreshToken),
  recheckAt: new Date(now() + recheckMs),
})

/** Reads the claims of a session again. Throws a `ServiceError` if they no longer grant the session. */
async function currentClaims(core: Core, found: IdentityProvider, session: ConsoleSessionDocument) {
  const { operator, workspaceId, provider: read } = session
  if (!read || read.issuer !== found.issuer) throw new ServiceError('Unauthenticated')
  const { refreshToken, mail, ...identity } = await found.refresh(operator, core.secretBox.open(read.sealed))
  if (identity.workspaceId !== workspaceId || refreshToken === undefined) throw new ServiceError('PermissionDenied')
  const { displayName, scopes } = identity
  await keepProvidedMember(core, workspaceId, { id: operator, name: displayName, mail })
  return { displayName, scopes, provider: checkOf(core, found, refreshToken) }
}

/**
 * Reads the claims of sessions again. Ends a session if the provider refuses, if its refresh token is of another
 * provider, or if the claims do not grant its workspace any more. A lease lets one core check a session at a time.
 */
export async function recheckProviderSessions(core: Core) {
  const { logger, now, db } = core
  const provider = identityProviderOf(core)
  const leases = createLeases(db.consoleSessions, { until: 'provider.recheckAt', token: 'provider.recheckToken' })

  async function check(found: IdentityProvider, { lease, document }: Leased<ConsoleSessionDocument>) {
    try {
      await leases.write(lease, { $set: await currentClaims(core, found, document) })
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code === 'ServiceUnavailable') {
        logFailure(logger, 'check of an operator at the provider failed; will retry')(error)
        await leases.write(lease, { $set: { 'provider.recheckAt': new Date(now() + retryMs) } })
        return
      }
      await leases.remove(lease)
    }
    await wakeupsOf(core).stateChanged(lease.id)
  }

  const running = new Set<Promise<void>>()
  while (provider) {
    const times = { now: new Date(now()), until: new Date(now() + leaseMs) }
    const claimed = await leases.take(times, { expiresAt: { $gt: times.now } })
    if (!claimed) break
    const checked: Promise<void> = whileHeld(check(provider, claimed))
      .catch(logFailure(logger, 'check of an operator failed; will retry'))
      .finally(() => running.delete(checked))
    running.add(checked)
    if (running.size === checksMax) await Promise.race(running)
  }
  await Promise.all(running)
}

export const operatorJobs = (core: Core) =>
  createJobs(core, { 'check of operators': [recheckEveryMs, () => recheckProviderSessions(core)] })
