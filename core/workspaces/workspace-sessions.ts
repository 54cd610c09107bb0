import {
  createRemoteJWKSet,
  errors,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
  type RemoteJWKSetOptions,
} from 'jose'
import { OperatorScopeSchema } from '#proto/access/v1/access_pb.js'
import { SettingError } from '../../platform/settings/settings.ts'
import { perCore } from '../core.ts'
import { ServiceError, unavailable } from '../errors.ts'

export const workspaceSessionAudience = 'service.workspace'

/** An operator who is signed in to one workspace (contract, section 5). */
export interface WorkspaceSession {
  subject: string
  workspaceId: string
  /** The claimed scopes, limited to those that an operator may have. */
  scopes: ReadonlySet<string>
  expiresAt: number
}

export interface WorkspaceSessionKeys {
  /** The current HS256 key, and earlier ones until their sessions expire. */
  secrets: Uint8Array[]
  /** URL of the signer's public keys (RFC 7517). */
  jwksUrl?: string
  jwksTimeoutMs?: number
  /** How long the public keys are cached. */
  jwksFreshMs?: number
  issuer?: string
}

const skewSeconds = 30
/** Tokens with an unknown key reload the key set at most once in this time. */
const jwksCooldownMs = 30_000
const publicKeyAlgorithms = ['RS256', 'ES256', 'EdDSA']

export const workspaceSessionsOf = perCore(({ config, workspaceSessionSecrets, now }) =>
  createWorkspaceSessions(
    {
      secrets: workspaceSessionSecrets,
      jwksUrl: config.WORKSPACE_SESSION_JWKS_URL || undefined,
      issuer: config.WORKSPACE_SESSION_ISSUER || undefined,
    },
    now,
  ),
)

export function createWorkspaceSessions(
  { secrets, jwksUrl, jwksTimeoutMs = 3_000, jwksFreshMs = 600_000, issuer }: WorkspaceSessionKeys,
  now: () => number,
) {
  const options: RemoteJWKSetOptions = {
    timeoutDuration: jwksTimeoutMs,
    cacheMaxAge: jwksFreshMs,
    cooldownDuration: jwksCooldownMs,
  }
  const keySet = jwksUrl === undefined ? undefined : createRemoteJWKSet(new URL(jwksUrl), options)

  /**
   * Finds the key of a token. Throws `ServiceUnavailable` if the key set cannot be loaded, and the error
   * of `find` if it lacks the key.
   */
  function publicKeyFrom(find: JWTVerifyGetKey): JWTVerifyGetKey {
    return async (header, token) => {
      try {
        return await find(header, token)
      } catch (error) {
        const unknown = error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys
        throw unknown ? error : unavailable(error)
      }
    }
  }

  async function payloadOf(token: string) {
    const rules: JWTVerifyOptions = {
      audience: workspaceSessionAudience,
      clockTolerance: skewSeconds,
      currentDate: new Date(now()),
      requiredClaims: ['sub', 'wid', 'scope', 'exp'],
      issuer,
    }
    for (const secret of secrets) {
      try {
        return (await jwtVerify(token, secret, { ...rules, algorithms: ['HS256'] })).payload
      } catch (error) {
        if (error instanceof errors.JWSSignatureVerificationFailed) continue
        if (error instanceof errors.JOSEAlgNotAllowed) break
        throw error
      }
    }
    if (!keySet) throw new ServiceError('Unauthenticated')
    return (await jwtVerify(token, publicKeyFrom(keySet), { ...rules, algorithms: publicKeyAlgorithms })).payload
  }

  return {
    /** Verifies a JWT. Errors: `Unauthenticated`; `ServiceUnavailable` while the key set cannot be loaded. */
    async verify(token: string): Promise<WorkspaceSession> {
      const { sub, wid, scope, exp } = await payloadOf(token).catch((error: unknown) => {
        if (error instanceof ServiceError) throw error
        throw new ServiceError('Unauthenticated')
      })
      const whole = isName(sub) && isName(wid) && typeof scope === 'string' && exp !== undefined
      if (!whole) throw new ServiceError('Unauthenticated')
      return {
        subject: sub,
        workspaceId: wid,
        scopes: new Set(scope.split(' ').filter((each) => operatorScopes.has(each))),
        expiresAt: exp * 1000,
      }
    },
  }
}

export type WorkspaceSessions = ReturnType<typeof createWorkspaceSessions>

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 256
}

/** 256 bits, the minimum for an HS256 key (RFC 7518, section 3.2). */
const minSecretBytes = 32

/** Parses `new,old` as HS256 keys. The error for a key that is too short has its position and not its text. */
export function parseWorkspaceSessionSecrets(text: string): Uint8Array[] {
  if (text === '') return []
  return text.split(',').map((secret, index) => {
    const key = new TextEncoder().encode(secret)
    if (key.length >= minSecretBytes) return key
    throw new SettingError(
      `WORKSPACE_SESSION_SECRET: number ${index + 1} of the list has fewer than ${minSecretBytes} bytes`,
    )
  })
}

/** All scopes of workspace sessions, for example `leads:deliver`. */
export const operatorScopes: ReadonlySet<string> = new Set(
  OperatorScopeSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ localName }) => localName.toLowerCase().replace('_', ':')),
)
