import { decodeJwt, jwtVerify, SignJWT } from 'jose'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Keyring } from '../keys/keyring.ts'
import { operatorScopes } from '../workspaces/operator-scopes.ts'
import { type WorkspaceSessions, workspaceSessionAudience } from '../workspaces/workspace-sessions.ts'

/** The caller of an internal service. */
export interface Caller {
  /** Name of the token or of the operator, for audits. */
  subject: string
  scopes: ReadonlySet<string>
  /** The one workspace it may act for; undefined for all. A workspace session always has one. */
  workspaceId?: string
  /** Expiry of its token in milliseconds since 1970; infinite if it does not expire. */
  expiresAt: number
}

export interface TokenGrant {
  subject: string
  scopes: string[]
  workspaceId?: string
  /** In seconds; absent: valid until its key is removed. */
  lifetime?: number
}

export interface Access {
  /**
   * Returns the caller of an `Authorization` header (service token or workspace session) if it has
   * the scope. Errors: `Unauthenticated` without a valid token, `PermissionDenied` without the
   * scope, `ServiceUnavailable` while the keys of workspace sessions cannot be loaded.
   */
  authenticate(authorization: string | null, scope: string): Promise<Caller>
  /** Issues a service token: a JWT (HS256) for the audience `service.core`. */
  issue(grant: TokenGrant): Promise<string>
}

/**
 * Scopes that a service token may have: those of operators and those of the service's own
 * processes.
 */
export const knownScopes = [...operatorScopes, 'visitors:act', 'deliveries:work']

const audience = 'service.core'
const type = 'service-token+jwt'
const maxCached = 1000
/** A removed key is accepted for at most this long, in milliseconds. */
const maxCachedMs = 60_000

/**
 * Service tokens and workspace sessions, which authenticate internal services and operators'
 * consoles. The audience tells them apart, and each kind has its own keys.
 */
export function createAccess(keyring: Keyring, now: () => number, workspaceSessions?: WorkspaceSessions): Access {
  const known = new Map<string, { caller: Caller; until: number }>()

  async function verifyServiceToken(token: string): Promise<Caller> {
    try {
      const { payload } = await jwtVerify(
        token,
        ({ kid = '' }) => {
          const found = keyring.find('service-token', kid)
          if (!found) throw new Error('unknown key')
          return found.key
        },
        { algorithms: ['HS256'], audience, typ: type, currentDate: new Date(now()), requiredClaims: ['sub', 'scope'] },
      )
      const { sub = '', scope, wid, exp } = payload
      return {
        subject: sub,
        scopes: new Set(String(scope).split(' ')),
        ...(typeof wid === 'string' ? { workspaceId: wid } : {}),
        expiresAt: exp === undefined ? Number.POSITIVE_INFINITY : exp * 1000,
      }
    } catch {
      throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    }
  }

  async function verify(token: string): Promise<Caller> {
    return workspaceSessions && unverifiedAudiences(token).includes(workspaceSessionAudience)
      ? workspaceSessions.verify(token)
      : verifyServiceToken(token)
  }

  async function callerOf(token: string): Promise<Caller> {
    let entry = known.get(token)
    if (!entry || entry.until <= now()) {
      const caller = await verify(token)
      entry = { caller, until: Math.min(caller.expiresAt, now() + maxCachedMs) }
      if (known.size >= maxCached) known.clear()
      known.set(token, entry)
    }
    return entry.caller
  }

  return {
    async authenticate(authorization, scope) {
      const token = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(authorization ?? '')?.[1]
      if (token === undefined) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      const caller = await callerOf(token)
      if (!caller.scopes.has(scope)) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      return caller
    },

    issue({ subject, scopes, workspaceId, lifetime }) {
      const { kid, key } = keyring.current('service-token')
      const jwt = new SignJWT({ scope: scopes.join(' '), ...(workspaceId === undefined ? {} : { wid: workspaceId }) })
        .setProtectedHeader({ alg: 'HS256', typ: type, kid })
        .setSubject(subject)
        .setAudience(audience)
        .setIssuedAt(Math.floor(now() / 1000))
      if (lifetime !== undefined) jwt.setExpirationTime(Math.floor(now() / 1000) + lifetime)
      return jwt.sign(key)
    },
  }
}

/** The audiences of an unverified token. Use them only to choose the verifier. */
function unverifiedAudiences(token: string): string[] {
  try {
    return [decodeJwt(token).aud ?? []].flat()
  } catch {
    return []
  }
}
