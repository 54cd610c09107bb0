import { createHash } from 'node:crypto'
import { decodeJwt, errors, jwtVerify, SignJWT } from 'jose'
import { createLruCache } from '../../platform/lru-cache.ts'
import { ServiceError } from '../errors.ts'
import type { Keyring } from '../keys/keyring.ts'
import type { useToken } from './tokens.ts'
import { operatorScopes, type WorkspaceSessions, workspaceSessionAudience } from './workspace-sessions.ts'

export interface Caller {
  /** Id of the token or console session, without its secret. */
  tokenId: string
  /** Name of the token or of the operator, for audits. */
  subject: string
  scopes: ReadonlySet<string>
  /** The only workspace of the caller; undefined for all. A workspace session always has one. */
  workspaceId?: string
  /** Expiry of the token in milliseconds since 1970; may be infinite. */
  expiresAt: number
  /**
   * Throws `Unauthenticated` if the token is revoked, or the caller has signed out or lost a scope. Open
   * streams are checked routinely.
   */
  requireActive?(isRoutine?: boolean): Promise<void>
  /** The console session of the caller, and whether it is of an account. */
  consoleSession?: { id: string; account: boolean }
}

/** What a core knows of callers. Without it, only the signatures of service tokens are checked. */
interface KnownCallers {
  tokens?: {
    requireLive(tokenId: string, isRoutine?: boolean): Promise<void>
    use(grant: Parameters<typeof useToken>[1]): Promise<void>
  }
  workspaceSessions?: WorkspaceSessions
  /** Finds a caller by its console session. Errors: `Unauthenticated` if the session has ended. */
  consoleCaller?(secret: string): Promise<Caller>
}

interface TokenGrant {
  subject: string
  scopes: string[]
  workspaceId?: string
  /** Lifetime in seconds. Without it, the token is valid until its key is removed. */
  lifetime?: number
}

/** Scopes of operators and of the service's own processes. */
export const knownScopes = [...operatorScopes, 'visitors:act', 'deliveries:work', 'bots:act']

/** Scopes of the token of a bot, which has one workspace. */
export const botScopes = ['bots:act', 'events:read', 'messages:read']

/** Throws if a grant has the scope of a bot and others that no bot may have. */
function isBot({ scopes, workspaceId }: Pick<TokenGrant, 'scopes' | 'workspaceId'>) {
  if (!scopes.includes('bots:act')) return false
  if (workspaceId === undefined) throw new Error('the token of a bot needs a workspace')
  const others = scopes.filter((scope) => !botScopes.includes(scope))
  if (others.length > 0) throw new Error(`the token of a bot may not have ${others.join(', ')}`)
  return true
}

/** Why a service token was refused, for the log. */
export class TokenRefusal extends Error {
  override readonly name = 'TokenRefusal'
  readonly kind: 'expired' | 'unknown-key' | 'invalid' | 'scope'
  constructor(kind: TokenRefusal['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

const audience = 'service.core'
const type = 'service-token+jwt'
const maxCached = 10_000
/**
 * How long a verified token is cached. Tokens of a removed key may be accepted for this time. In this time,
 * the use of a token is noted once.
 */
const maxCachedMs = 60_000

/**
 * Authenticates by service token, workspace session or console session. The audience of a token
 * determines its kind. Service tokens and workspace sessions have separate keys.
 */
export function createAccess(
  keyring: Keyring,
  now: () => number,
  { tokens, workspaceSessions, consoleCaller }: KnownCallers = {},
) {
  const known = createLruCache<{ caller: Caller; until: number }>(maxCached)

  async function verifyServiceToken(token: string): Promise<Omit<Caller, 'tokenId'>> {
    try {
      const { payload } = await jwtVerify(
        token,
        ({ kid = '' }) => {
          const found = keyring.find('service-token', kid)
          if (!found)
            throw new TokenRefusal(
              'unknown-key',
              `${unverifiedSubject(token)} has the key ${quoted(kid)}, which SECRET_KEYS lacks`,
            )
          return found.key
        },
        { algorithms: ['HS256'], audience, typ: type, currentDate: new Date(now()), requiredClaims: ['sub', 'scope'] },
      )
      const { sub = '', scope, wid, exp } = payload
      const scopes = String(scope).split(' ')
      const workspaceId = typeof wid === 'string' ? wid : undefined
      return {
        subject: sub,
        scopes: new Set(isBot({ scopes, workspaceId }) ? botScopes : scopes),
        workspaceId,
        expiresAt: exp === undefined ? Number.POSITIVE_INFINITY : exp * 1000,
      }
    } catch (error) {
      throw new ServiceError('Unauthenticated', { cause: refusalOf(token, error) })
    }
  }

  async function verify(token: string) {
    const found = known.get(token)
    if (found && found.until > now()) {
      await found.caller.requireActive?.()
      return found.caller
    }
    const isServiceToken = ![unverified(token)?.aud ?? []].flat().includes(workspaceSessionAudience)
    const verified = await (isServiceToken || !workspaceSessions
      ? verifyServiceToken(token)
      : workspaceSessions.verify(token))
    const tokenId = tokenIdOf(token)
    const caller = {
      ...verified,
      tokenId,
      ...(tokens && { requireActive: (isRoutine?: boolean) => tokens.requireLive(tokenId, isRoutine) }),
    }
    const { subject, workspaceId, expiresAt } = verified
    // Of calls that arrive together, the first notes the use.
    const isNoted = (known.get(token)?.until ?? 0) > now()
    known.set(token, { caller, until: Math.min(caller.expiresAt, now() + maxCachedMs) })
    await (isNoted ? caller.requireActive?.() : tokens?.use({ tokenId, subject, workspaceId, expiresAt }))
    return caller
  }

  return {
    /**
     * Returns the caller of an `Authorization` header. Errors: `Unauthenticated` without a valid token,
     * `PermissionDenied` without the scope, `ServiceUnavailable` while the keys of workspace sessions
     * cannot be loaded.
     */
    async authenticate(authorization: string | null, scope: string) {
      const secret = /^Console ([\w-]+)$/i.exec(authorization ?? '')?.[1]
      const token = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(authorization ?? '')?.[1]
      let caller: Caller
      if (secret !== undefined && consoleCaller) caller = await consoleCaller(secret)
      else if (token !== undefined) caller = await verify(token)
      else throw new ServiceError('Unauthenticated')
      if (!caller.scopes.has(scope)) {
        const cause = new TokenRefusal('scope', `${quoted(caller.subject)} lacks the scope ${scope}`)
        throw new ServiceError('PermissionDenied', { cause })
      }
      return caller
    },

    /** Issues a service token. Rejects if the token of a bot has no workspace, or scopes that no bot has. */
    async issue({ subject, scopes, workspaceId, lifetime }: TokenGrant) {
      isBot({ scopes, workspaceId })
      const { kid, key } = keyring.current('service-token')
      const jwt = new SignJWT({ scope: scopes.join(' '), wid: workspaceId })
        .setProtectedHeader({ alg: 'HS256', typ: type, kid })
        .setSubject(subject)
        .setAudience(audience)
        .setIssuedAt(Math.floor(now() / 1000))
      if (lifetime !== undefined) jwt.setExpirationTime(Math.floor(now() / 1000) + lifetime)
      return jwt.sign(key)
    },
  }
}

export type Access = ReturnType<typeof createAccess>

/** Returns a hash of what the signature covers, because some signatures have several valid forms. */
export function tokenIdOf(token: string): string {
  const signed = token.slice(0, token.lastIndexOf('.'))
  return `tok_${createHash('sha256').update(signed).digest('base64url').slice(0, 22)}`
}

function refusalOf(token: string, error: unknown) {
  if (error instanceof TokenRefusal) return error
  const whose = unverifiedSubject(token)
  if (error instanceof errors.JWTExpired) {
    const at = new Date(Number(error.payload.exp) * 1000).toISOString()
    return new TokenRefusal('expired', `${whose} expired on ${at}`)
  }
  const isForged = error instanceof errors.JWSSignatureVerificationFailed
  return new TokenRefusal(
    'invalid',
    isForged ? `${whose} was changed, or signed with another key of the same id` : `${whose} is no service token`,
  )
}

/** Makes text of a caller short enough for a line of the log. */
const quoted = (text: string) => JSON.stringify(text.slice(0, 64))

function unverifiedSubject(token: string) {
  const claims = unverified(token)
  return claims ? quoted(claims.sub ?? '') : 'a garbled token'
}

/** Returns claims whose signature nobody has checked. Use them only for the log, and to choose the verifier. */
function unverified(token: string) {
  try {
    return decodeJwt(token)
  } catch {
    return undefined
  }
}
