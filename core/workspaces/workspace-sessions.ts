import {
  createRemoteJWKSet,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
  type RemoteJWKSetOptions,
} from 'jose'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError, unavailable } from '../errors.ts'
import { operatorScopes } from './operator-scopes.ts'

export const workspaceSessionAudience = 'service.workspace'

/** An operator, signed in to one workspace (contract, section 5). */
export interface WorkspaceSession {
  /** The operator. */
  subject: string
  workspaceId: string
  /** Of those that it claims, the ones that an operator may hold. */
  scopes: ReadonlySet<string>
  /** Milliseconds since 1970. */
  expiresAt: number
}

export interface WorkspaceSessions {
  /**
   * The session that a JWT is. Errors: `Unauthenticated`; `ServiceUnavailable` while the key set that would tell is out
   * of reach.
   */
  verify(token: string): Promise<WorkspaceSession>
}

export interface WorkspaceSessionKeys {
  /** HS256 keys, each accepted: a new one and, until the sessions of the old one have ended, that. */
  secrets: Uint8Array[]
  /** Where the public keys of whoever signs are (RFC 7517). */
  jwksUrl?: string
  /** Longest wait for them, in milliseconds. */
  jwksTimeoutMs: number
  /** How long they are used without asking again, in milliseconds. */
  jwksFreshMs: number
  /** `iss` that a session must bear. */
  issuer?: string
}

const skewSeconds = 30
/** A key set is asked for again on account of an unknown key no more often than this. */
const jwksCooldownMs = 30_000
const publicKeyAlgorithms = ['RS256', 'ES256', 'EdDSA']

export function createWorkspaceSessions(
  { secrets, jwksUrl, jwksTimeoutMs, jwksFreshMs, issuer }: WorkspaceSessionKeys,
  now: () => number,
): WorkspaceSessions {
  const options: RemoteJWKSetOptions = {
    timeoutDuration: jwksTimeoutMs,
    cacheMaxAge: jwksFreshMs,
    cooldownDuration: jwksCooldownMs,
  }
  const keySet = jwksUrl === undefined ? undefined : createRemoteJWKSet(new URL(jwksUrl), options)

  /** The public key, where a failure to get the set is told from a set that does not have it. */
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

  async function payloadOf(token: string): Promise<JWTPayload> {
    const rules: JWTVerifyOptions = {
      audience: workspaceSessionAudience,
      clockTolerance: skewSeconds,
      currentDate: new Date(now()),
      requiredClaims: ['sub', 'wid', 'scope', 'exp'],
      ...(issuer === undefined ? {} : { issuer }),
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
    if (!keySet) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    return (await jwtVerify(token, publicKeyFrom(keySet), { ...rules, algorithms: publicKeyAlgorithms })).payload
  }

  return {
    async verify(token) {
      const { sub, wid, scope, exp } = await payloadOf(token).catch((error: unknown): never => {
        if (error instanceof ServiceError) throw error
        throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      })
      const whole = isName(sub) && isName(wid) && typeof scope === 'string' && exp !== undefined
      if (!whole) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      return {
        subject: sub,
        workspaceId: wid,
        scopes: new Set(scope.split(' ').filter((each) => operatorScopes.has(each))),
        expiresAt: exp * 1000,
      }
    },
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 256
}

/** At least 256 bits, as RFC 7518, section 3.2, asks of an HS256 key. */
const minSecretBytes = 32

/** `new,old` as HS256 keys, UTF-8 as written. Errors: say that one is too short, never which it is. */
export function parseWorkspaceSessionSecrets(text: string): Uint8Array[] {
  if (text === '') return []
  return text.split(',').map((secret, index) => {
    const key = new TextEncoder().encode(secret)
    if (key.length >= minSecretBytes) return key
    throw new Error(`WORKSPACE_SESSION_SECRET: number ${index + 1} of the list has fewer than ${minSecretBytes} bytes`)
  })
}
