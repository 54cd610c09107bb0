import { jwtVerify, SignJWT } from 'jose'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from './errors.ts'
import type { Keyring } from './keyring.ts'

/** Who calls an internal service. */
export interface Caller {
  /** Name of the token, for the record. */
  subject: string
  scopes: ReadonlySet<string>
  /** The one workspace that it may act for; undefined for all of them. */
  workspaceId?: string
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
   * The caller that an `Authorization` header names, if it may do what needs the scope.
   * Errors: `Unauthenticated` without a good token, `PermissionDenied` without the scope.
   */
  authenticate(authorization: string | null, scope: string): Promise<Caller>
  /** A service token: a JWT (HS256) for the audience `service.core`. */
  issue(grant: TokenGrant): Promise<string>
}

const audience = 'service.core'
const type = 'service-token+jwt'
const maxRemembered = 1000

/** Service tokens: what an internal service shows to the core. */
export function createAccess(keyring: Keyring, now: () => number): Access {
  const known = new Map<string, { caller: Caller; expiresAt: number }>()

  async function verify(token: string): Promise<{ caller: Caller; expiresAt: number }> {
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
      const caller: Caller = {
        subject: sub,
        scopes: new Set(String(scope).split(' ')),
        ...(typeof wid === 'string' ? { workspaceId: wid } : {}),
      }
      return { caller, expiresAt: exp === undefined ? Number.POSITIVE_INFINITY : exp * 1000 }
    } catch {
      throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    }
  }

  async function callerOf(token: string): Promise<Caller> {
    let entry = known.get(token)
    if (!entry || entry.expiresAt <= now()) {
      entry = await verify(token)
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
