import type { Logger } from 'pino'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { whileHeld } from '../mongodb/leases.ts'
import { field, url, validate } from '../rules.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import type { ConsoleSessions, SignedIn } from './console-sessions.ts'
import type { IdentityProvider, SignInRequest } from './identity-provider.ts'
import { type ConsoleSession, linkLifetimeMs, newSecret, secretId, sessionLifetimeMs } from './model.ts'
import type { Teams } from './teams.ts'

const callbackPath = '/console/session/callback'
/**
 * Time in milliseconds after which claims are read again. A round of checks and a check in it take up to
 * `leaseMs` each, so a scope that the provider has revoked stays effective for at most a minute.
 */
const recheckMs = 30_000
/** Time in milliseconds that a check may take. Afterwards another core may begin it again. */
const leaseMs = 15_000
/** Time in milliseconds after which a check is repeated that the provider did not answer. */
const retryMs = 5_000
/** Maximum number of checks that one core makes at once, so that slow answers delay no others. */
const checksMax = 16
/** Lifetime in milliseconds of a session whose claims cannot be read again. */
const uncheckedLifetimeMs = 3_600_000

export function createProviderSignIn(dependencies: {
  provider: IdentityProvider | undefined
  store: ConsoleSessionStore
  teams: Pick<Teams, 'keepProvided'>
  consoleSessions: ConsoleSessions
  secretBox: SecretBox
  wakeups: Pick<Wakeups, 'stateChanged'>
  logger: Logger
  now: () => number
}) {
  const { provider, store, teams, consoleSessions, secretBox, wakeups, logger, now } = dependencies

  function requireProvider(): IdentityProvider {
    if (!provider) throw new ServiceError(ErrorCode.NOT_FOUND)
    return provider
  }

  const checkOf = ({ issuer }: IdentityProvider, refreshToken: string) => ({
    issuer,
    sealed: secretBox.seal(refreshToken),
    recheckAt: new Date(now() + recheckMs),
  })

  async function check(found: IdentityProvider, { lease, session }: Claimed): Promise<void> {
    try {
      await store.updateSession(lease, await currentClaims(found, session))
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code === ErrorCode.SERVICE_UNAVAILABLE) {
        logger.warn({ reason: (error as Error).name }, 'check of an operator at the provider failed; will retry')
        return store.postponeRecheck(lease, new Date(now() + retryMs))
      }
      await store.endSession(lease)
    }
    await wakeups.stateChanged(session.id)
  }

  /** Reads the claims of a session again. Throws a `ServiceError` if they no longer grant the session. */
  async function currentClaims(found: IdentityProvider, { operator, workspaceId, provider: read }: ConsoleSession) {
    if (!read || read.issuer !== found.issuer) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    const { refreshToken, mail, ...identity } = await found.refresh(operator, secretBox.open(read.sealed))
    if (identity.workspaceId !== workspaceId || refreshToken === undefined)
      throw new ServiceError(ErrorCode.PERMISSION_DENIED)
    const { displayName, scopes } = identity
    await teams.keepProvided(workspaceId, { id: operator, name: displayName, mail })
    return { displayName, scopes, provider: checkOf(found, refreshToken) }
  }

  return {
    isEnabled: provider !== undefined,
    /**
     * Begins a sign-in. Returns the URL at which the operator signs in, and a new secret for the
     * browser. Errors: `NotFound` if no provider is configured, `ServiceUnavailable`,
     * `ValidationFailed`.
     */
    async begin(origin: string, replacedSecret: string): Promise<{ url: string; browserSecret: string }> {
      const found = requireProvider()
      validate(field('/origin', origin, url('http', 'https')))
      const [state, nonce, codeVerifier, browserSecret] = [newSecret(), newSecret(), newSecret(), newSecret()]
      const request: SignInRequest = { redirectUri: new URL(callbackPath, origin).href, state, nonce, codeVerifier }
      const signInUrl = await found.signInUrl(request)
      await store.insertAttempt({
        id: secretId(state),
        browserId: secretId(browserSecret),
        ...(replacedSecret !== '' && { replacedId: secretId(replacedSecret) }),
        issuer: found.issuer,
        sealed: secretBox.seal(JSON.stringify(request)),
        expiresAt: new Date(now() + linkLifetimeMs),
      })
      return { url: signInUrl, browserSecret }
    },

    /**
     * Finishes a sign-in with the parameters of the callback. Each sign-in finishes once, and only in
     * the browser that began it. Errors: `Unauthenticated`, `PermissionDenied` if the claims grant
     * nothing, `ServiceUnavailable`.
     */
    async finish({
      origin,
      parameters,
      browserSecret,
    }: {
      origin: string
      parameters: string
      browserSecret: string
    }): Promise<SignedIn> {
      const found = requireProvider()
      const state = new URLSearchParams(parameters).get('state') ?? ''
      const attempt = await store.takeAttempt(secretId(state), secretId(browserSecret), new Date(now()))
      // The code and its verifier belong to the issuer at which the sign-in began.
      if (!attempt || attempt.issuer !== found.issuer || attempt.sealed === undefined)
        throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      const request: SignInRequest = JSON.parse(secretBox.open(attempt.sealed))
      if (new URL(request.redirectUri).origin !== origin) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      const { refreshToken, mail, ...identity } = await found.finish(request, parameters)
      await teams.keepProvided(identity.workspaceId, { id: identity.operator, name: identity.displayName, mail })
      return consoleSessions.begin(
        {
          ...identity,
          method: 'provider',
          account: true,
          expiresAt: new Date(now() + (refreshToken === undefined ? uncheckedLifetimeMs : sessionLifetimeMs)),
          ...(refreshToken !== undefined && {
            provider: checkOf(found, refreshToken),
          }),
        },
        attempt.replacedId,
      )
    },

    /**
     * Reads the claims of sessions again. Ends a session if the provider refuses, if another provider
     * issued its refresh token, or if the claims no longer grant access to the same workspace.
     */
    async recheck(): Promise<void> {
      const running = new Set<Promise<void>>()
      while (provider) {
        const claimed = await store.claimRecheck(new Date(now()), new Date(now() + leaseMs))
        if (!claimed) break
        const checked: Promise<void> = whileHeld(check(provider, claimed))
          .catch((error: Error) => logger.warn({ reason: error.name }, 'check of an operator failed; will retry'))
          .finally(() => running.delete(checked))
        running.add(checked)
        if (running.size === checksMax) await Promise.race(running)
      }
      await Promise.all(running)
    },
  }
}

export type ProviderSignIn = ReturnType<typeof createProviderSignIn>

type Claimed = NonNullable<Awaited<ReturnType<ConsoleSessionStore['claimRecheck']>>>
