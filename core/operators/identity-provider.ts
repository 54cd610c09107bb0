import * as oidc from 'openid-client'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError, unavailable } from '../errors.ts'
import { line } from '../rules.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import type { ProviderSettings } from './provider-settings.ts'

interface ProviderIdentity {
  operator: string
  displayName: string
  /** Verified address. */
  mail?: string | undefined
  workspaceId: string
  scopes: string[]
  /** Undefined if the provider issues no token with which the claims can be read again. */
  refreshToken: string | undefined
}

export interface SignInRequest {
  redirectUri: string
  state: string
  nonce: string
  codeVerifier: string
}

const timeoutSeconds = 5
const toleranceSeconds = 30
const discoveryFreshMs = 3_600_000
/** The first valid one is the name that visitors see. */
const nameClaims = ['name', 'nickname', 'given_name', 'preferred_username']

type Claims = Record<string, unknown>

/** Uses PKCE, state and nonce. */
export function createIdentityProvider(settings: ProviderSettings, now: () => number) {
  const isInsecure = settings.issuer.startsWith('http:')
  let discovered: { at: number; metadata: Promise<oidc.ServerMetadata> } | undefined

  async function discover(): Promise<oidc.ServerMetadata> {
    const execute = isInsecure ? [oidc.allowInsecureRequests] : []
    const options = { execute, timeout: timeoutSeconds }
    const found = await oidc.discovery(new URL(settings.issuer), settings.clientId, undefined, undefined, options)
    return found.serverMetadata()
  }

  /** A new configuration for each call reads the provider's current keys. */
  async function configuration() {
    if (!discovered || now() - discovered.at > discoveryFreshMs) {
      const reading = { at: now(), metadata: discover() }
      reading.metadata.catch(() => {
        if (discovered === reading) discovered = undefined
      })
      discovered = reading
    }
    const { clientId, clientSecret } = settings
    const clock = {
      [oidc.clockTolerance]: toleranceSeconds,
      [oidc.clockSkew]: Math.round((now() - Date.now()) / 1000),
    }
    const found = new oidc.Configuration(
      await discovered.metadata,
      clientId,
      clientSecret ? { client_secret: clientSecret, ...clock } : clock,
      clientSecret ? oidc.ClientSecretPost(clientSecret) : oidc.None(),
    )
    if (isInsecure) oidc.allowInsecureRequests(found)
    found.timeout = timeoutSeconds
    return found
  }

  async function identityOf(
    config: oidc.Configuration,
    tokens: oidc.TokenEndpointResponse & oidc.TokenEndpointResponseHelpers,
    operator: string | undefined,
  ): Promise<ProviderIdentity> {
    const idClaims = tokens.claims()
    const sub = operator ?? idClaims?.sub ?? ''
    if (sub === '' || (idClaims && idClaims.sub !== sub)) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    const userInfo = config.serverMetadata().userinfo_endpoint
      ? await oidc.fetchUserInfo(config, tokens.access_token, sub)
      : {}
    const identity = readClaims({ ...idClaims, ...userInfo, sub }, settings)
    if (!identity) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
    return { ...identity, refreshToken: tokens.refresh_token }
  }

  return {
    /** Tokens and codes of another issuer must not be sent to the provider. */
    issuer: settings.issuer,
    /** Errors: `ServiceUnavailable`. */
    signInUrl: ({ redirectUri, state, nonce, codeVerifier }: SignInRequest) =>
      answered(async () => {
        const parameters = {
          redirect_uri: redirectUri,
          scope: settings.scope,
          state,
          nonce,
          code_challenge: await oidc.calculatePKCECodeChallenge(codeVerifier),
          code_challenge_method: 'S256',
        }
        return oidc.buildAuthorizationUrl(await configuration(), parameters).href
      }),
    /**
     * Errors: `Unauthenticated` if the provider refuses or its answer fails a check; `PermissionDenied` if the
     * claims grant nothing; `ServiceUnavailable`.
     */
    finish: (
      { redirectUri, state, nonce, codeVerifier }: SignInRequest,
      parameters: string,
    ): Promise<ProviderIdentity> =>
      answered(async () => {
        const config = await configuration()
        const callback = new URL(redirectUri)
        callback.search = parameters
        const checks = { pkceCodeVerifier: codeVerifier, expectedState: state, expectedNonce: nonce }
        const tokens = await oidc.authorizationCodeGrant(config, callback, { ...checks, idTokenExpected: true })
        return identityOf(config, tokens, undefined)
      }),
    /** Reads the claims again. Errors: those of `finish`. */
    refresh: (operator: string, refreshToken: string): Promise<ProviderIdentity> =>
      answered(async () => {
        const config = await configuration()
        const identity = await identityOf(config, await oidc.refreshTokenGrant(config, refreshToken), operator)
        return { ...identity, refreshToken: identity.refreshToken ?? refreshToken }
      }),
  }
}

export type IdentityProvider = ReturnType<typeof createIdentityProvider>

/** Converts errors: a refusal or a failed check is `Unauthenticated`, others are `ServiceUnavailable`. */
async function answered<T>(run: () => Promise<T>) {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ServiceError) throw error
    const isRefused =
      error instanceof oidc.AuthorizationResponseError ||
      (error instanceof oidc.ResponseBodyError && error.status < 500) ||
      error instanceof oidc.WWWAuthenticateChallengeError ||
      (error instanceof oidc.ClientError && !outages.has(String(error.code)))
    // The library's message can contain claims and parameters.
    throw isRefused ? new ServiceError(ErrorCode.UNAUTHENTICATED) : unavailable()
  }
}

const outages = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'])

/** Returns undefined if the claims name no workspace, no scope or no name. */
function readClaims(claims: Claims, settings: ProviderSettings): Omit<ProviderIdentity, 'refreshToken'> | undefined {
  const { workspaceId: fixed, workspaceClaim, rolesClaim, roles } = settings
  const workspaceId = fixed || claims[workspaceClaim]
  const granted = listOf(claims[rolesClaim]).flatMap((role) => (roles.size > 0 ? (roles.get(role) ?? []) : [role]))
  const scopes = [...operatorScopes].filter((scope) => granted.includes(scope) || granted.includes('*'))
  const names = nameClaims.map((claim) => claims[claim])
  const displayName = names.find(
    (name): name is string => typeof name === 'string' && line(1, 128)(name.trim()) === undefined,
  )
  const { sub, email, email_verified: isVerified } = claims
  const mail = typeof email === 'string' && isVerified === true ? email.toLowerCase() : undefined
  const isComplete =
    typeof sub === 'string' && typeof workspaceId === 'string' && scopes.length > 0 && displayName !== undefined
  return isComplete ? { operator: sub, displayName: displayName.trim(), mail, workspaceId, scopes } : undefined
}

/** A claim with several values is a list, or a text with spaces (RFC 8693, `scope`). */
function listOf(claim: unknown) {
  if (typeof claim === 'string') return claim.split(' ').filter(Boolean)
  return Array.isArray(claim) ? claim.filter((each) => typeof each === 'string') : []
}
