import { decodeJwt, jwtVerify, SignJWT } from 'jose'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Keyring } from '../keys/keyring.ts'
import { operatorScopes } from '../workspaces/operator-scopes.ts'
import { type WorkspaceSessions, workspaceSessionAudience } from '../workspaces/workspace-sessions.ts'

/** Who calls an internal service. */
export interface Caller {
  /** Name of the token, or of the operator, for the record. */
  subject: string
  scopes: ReadonlySet<string>
  /** The one workspace that it may act for; undefined for all of them, which a workspace session never is. */
  workspaceId?: string
  /** When its token ends, in milliseconds since 1970; infinite for one that does not. */
  expiresAt: number
}

export interface TokenGrant {
  subject: string
  scopes: string[]
  workspaceId?: string
  /** Seconds; left out: until its key is taken away. */
  lifetime?: number
}

export interface Access {
  /**
   * The caller that an `Authorization` header names, with a service token or a workspace session, if it may do what
   * needs the scope. Errors: `Unauthenticated` without a good one, `PermissionDenied` without the scope,
   * `ServiceUnavailable` while the keys of workspace sessions are out of reach.
   */
  authenticate(authorization: string | null, scope: string): Promise<Caller>
  /** A service token: a JWT (HS256) for the audience `service.core`. */
  issue(grant: TokenGrant): Promise<string>
}

/** What a service token may be for: what operators may do, and what the service's own parts do. */
export const knownScopes = [...operatorScopes, 'visitors:act', 'deliveries:work']

const audience = 'service.core'
const type = 'service-token+jwt'
const maxRemembered = 1000
/** A key that is taken away counts no longer than this, in milliseconds. */
const maxRememberedMs = 60_000

/**
 * Service tokens and workspace sessions: what an internal service, or an operator's console, shows to the core. The
 * audience tells them apart, and each kind has keys of its own.
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
    return workspaceSessions && audiencesOf(token).includes(workspaceSessionAudience)
      ? workspaceSessions.verify(token)
      : verifyServiceToken(token)
  }

  async function callerOf(token: string): Promise<Caller> {
    let entry = known.get(token)
    if (!entry || entry.until <= now()) {
      const caller = await verify(token)
      entry = { caller, until: Math.min(caller.expiresAt, now() + maxRememberedMs) }
      if (known.size >= maxRemembered) known.clear()
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

/** What an unverified token says it is for: only good to choose who verifies it. */
function audiencesOf(token: string): string[] {
  try {
    return [decodeJwt(token).aud ?? []].flat()
  } catch {
    return []
  }
}
