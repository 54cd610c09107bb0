import * as oidc from 'openid-client'
import { SettingError } from '../../platform/settings/settings.ts'
import type { CoreConfig } from '../config.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { line } from '../rules.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'

export interface SignInRequest {
  redirectUri: string
  state: string
  nonce: string
  codeVerifier: string
}

const timeoutSeconds = 5
const toleranceSeconds = 30
const discoveryFreshMs = 3_600_000
/** Claims that may have the name that visitors see. The first valid one is used. */
const nameClaims = ['name', 'nickname', 'given_name', 'preferred_username']

/** Signs operators in at an OpenID Connect provider, with PKCE, state and nonce. */
export function createIdentityProvider(config: CoreConfig, now: () => number) {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret, OIDC_SCOPE: scope } = config
  const roles = parseRoles(config.OIDC_ROLES)
  const isInsecure = issuer.startsWith('http:')
  let discovered: { at: number; metadata: Promise<oidc.ServerMetadata> } | undefined

  async function discover() {
    const execute = isInsecure ? [oidc.allowInsecureRequests] : []
    const options = { execute, timeout: timeoutSeconds }
    return (await oidc.discovery(new URL(issuer), clientId, undefined, undefined, options)).serverMetadata()
  }

  /** Each call gets a new configuration, because it reads the provider's current keys. */
  async function configuration() {
    if (!discovered || now() - discovered.at > discoveryFreshMs) {
      const reading = { at: now(), metadata: discover() }
      reading.metadata.catch(() => {
        if (discovered === reading) discovered = undefined
      })
      discovered = reading
    }
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
    client: oidc.Configuration,
    tokens: oidc.TokenEndpointResponse & oidc.TokenEndpointResponseHelpers,
    operator?: string,
  ) {
    const idClaims = tokens.claims()
    const sub = operator ?? idClaims?.sub ?? ''
    if (sub === '' || (idClaims && idClaims.sub !== sub)) throw new ServiceError('Unauthenticated')
    const userInfo = client.serverMetadata().userinfo_endpoint
      ? await oidc.fetchUserInfo(client, tokens.access_token, sub)
      : {}
    const identity = readClaims({ ...idClaims, ...userInfo, sub }, config, roles)
    if (!identity) throw new ServiceError('PermissionDenied')
    // The claims can be read again with this token. It is undefined if the provider issues none.
    return { ...identity, refreshToken: tokens.refresh_token }
  }

  return {
    /** URL of the provider. Tokens and codes of another issuer must not be sent to it. */
    issuer,
    /** Returns the URL at which the operator signs in. Errors: `ServiceUnavailable`. */
    signInUrl: ({ redirectUri, state, nonce, codeVerifier }: SignInRequest) =>
      answered(async () => {
        const parameters = {
          redirect_uri: redirectUri,
          scope,
          state,
          nonce,
          code_challenge: await oidc.calculatePKCECodeChallenge(codeVerifier),
          code_challenge_method: 'S256',
        }
        return oidc.buildAuthorizationUrl(await configuration(), parameters).href
      }),
    /**
     * Exchanges the parameters of the callback for the data of the operator. Errors: `Unauthenticated` if the
     * provider refuses or its answer fails a check; `PermissionDenied` if the claims grant nothing;
     * `ServiceUnavailable`.
     */
    finish: ({ redirectUri, state, nonce, codeVerifier }: SignInRequest, parameters: string) =>
      answered(async () => {
        const client = await configuration()
        const callback = new URL(redirectUri)
        callback.search = parameters
        const checks = { pkceCodeVerifier: codeVerifier, expectedState: state, expectedNonce: nonce }
        const tokens = await oidc.authorizationCodeGrant(client, callback, { ...checks, idTokenExpected: true })
        return identityOf(client, tokens)
      }),
    /** Reads the claims again. Errors: those of `finish`. */
    refresh: (operator: string, refreshToken: string) =>
      answered(async () => {
        const client = await configuration()
        const identity = await identityOf(client, await oidc.refreshTokenGrant(client, refreshToken), operator)
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
    throw isRefused ? new ServiceError('Unauthenticated') : unavailable()
  }
}

const outages = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'])

/** Returns undefined if the claims name no workspace, no scope or no name. */
function readClaims(
  claims: Record<string, unknown>,
  { OIDC_WORKSPACE, OIDC_WORKSPACE_CLAIM, OIDC_ROLES_CLAIM }: CoreConfig,
  roles: ReadonlyMap<string, string[]>,
) {
  const workspaceId = OIDC_WORKSPACE || claims[OIDC_WORKSPACE_CLAIM]
  const granted = listOf(claims[OIDC_ROLES_CLAIM]).flatMap((role) =>
    roles.size > 0 ? (roles.get(role) ?? []) : [role],
  )
  const scopes = [...operatorScopes].filter((scope) => granted.includes(scope) || granted.includes('*'))
  const names = nameClaims.map((claim) => claims[claim])
  const displayName = names.find(
    (name): name is string => typeof name === 'string' && line(1, 128)(name.trim()) === undefined,
  )
  const { sub, email, email_verified: isVerified } = claims
  const isMail = typeof email === 'string' && isVerified === true
  const isComplete =
    typeof sub === 'string' && typeof workspaceId === 'string' && scopes.length > 0 && displayName !== undefined
  if (!isComplete) return undefined
  const mail: { mail?: string } = isMail ? { mail: email } : {}
  return { operator: sub, displayName: displayName.trim(), workspaceId, scopes, ...mail }
}

/** A claim with several values is a list, or a text with spaces (RFC 8693, `scope`). */
function listOf(claim: unknown) {
  if (typeof claim === 'string') return claim.split(' ').filter(Boolean)
  return Array.isArray(claim) ? claim.filter((each) => typeof each === 'string') : []
}

/** Parses `agent=messages:read messages:write;admin=*`. Errors: `SettingError` with the wrong entry. */
function parseRoles(text: string) {
  const entries = text.split(';').filter((entry) => entry.trim() !== '')
  return new Map(
    entries.map((entry) => {
      const [role = '', scopes = ''] = entry.split('=').map((part) => part.trim())
      const list = scopes.split(' ').filter(Boolean)
      if (role !== '' && list.length > 0 && list.every((scope) => scope === '*' || operatorScopes.has(scope)))
        return [role, list] as const
      throw new SettingError(`OIDC_ROLES: ${JSON.stringify(entry)} must be a role, "=" and scopes of operators`)
    }),
  )
}
