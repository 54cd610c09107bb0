import { timestampMs } from '@bufbuild/protobuf/wkt'
import type { AuthorizeGrantResponse } from '#proto/session/v1/session_pb.js'
import { createLruCache } from '../../platform/lru-cache.ts'
import type { CoreClients } from './core-clients.ts'

/** Credentials that the browser sent. The core verifies them on every call. */
export interface Credentials {
  accessGrant: string
  origin: string
}

/** The capabilities of the session's installation. */
export type Capabilities = Omit<NonNullable<AuthorizeGrantResponse['capabilities']>, '$typeName' | '$unknown'>

/** A grant that a core has authorized. */
export interface Authorization {
  sessionId: string
  capabilities: Capabilities
}

/** Cache of authorized grants. Refusals are never cached. */
export interface GrantCache {
  /**
   * Returns a cached authorization that is at most `FRESH_MS` old, or asks a core. Rejects if the
   * core refuses.
   */
  authorize(credentials: Credentials, correlationId: string): Promise<Authorization>
  /** Asks a core and accepts a closed session. The result is not cached. */
  authorizeClosedToo(credentials: Credentials, correlationId: string): Promise<{ sessionId: string }>
  /** Like `authorize`, but accepts an expired grant while its session can be renewed. */
  authorizeExpiredToo(credentials: Credentials, correlationId: string): Promise<Authorization>
  /**
   * Like `authorize`, but a cached authorization must be at most `RECHECK_MS` old. `expiredToo`
   * accepts an expired grant while its session can be renewed.
   */
  confirm(credentials: Credentials, correlationId: string, expiredToo: boolean): Promise<Authorization>
  forget(credentials: Credentials): void
}

/** A call to a core, pending or answered. */
interface Call {
  startedAt: number
  answer: Promise<Authorization>
  /** Whether the call accepts an expired grant. */
  expiredToo: boolean
  /** End of the grant in milliseconds since 1970; infinite while pending. */
  expiresAt: number
  /** Time until which the session can be renewed; infinite while pending. */
  renewableUntil: number
}

export const GRANTS_MAX = 50_000
/** How long an authorized grant is cached. */
const FRESH_MS = 5_000
/** Age from which a cached authorization is checked again before a request is refused. */
const RECHECK_MS = 250

/**
 * A bounded cache of authorized grants. If a grant is cached, the gateway runs its checks in order
 * without an extra call to a core. The core still authorizes each call itself. The age of an entry
 * counts from the start of its call.
 */
export function createGrantCache(options: { core: CoreClients; now: () => number }): GrantCache {
  const { core, now } = options
  // The cache's own `fetchMethod` cannot be used: a pending call may be too old for `confirm`.
  const calls = createLruCache<Call>(GRANTS_MAX)

  function ask(
    key: string,
    credentials: Credentials,
    correlationId: string,
    expiredToo: boolean,
  ): Promise<Authorization> {
    const pending = Number.POSITIVE_INFINITY
    const call: Call = { startedAt: now(), answer: read(), expiredToo, expiresAt: pending, renewableUntil: pending }
    calls.set(key, call)
    call.answer.catch(() => {
      if (calls.peek(key) === call) calls.delete(key)
    })
    return call.answer

    async function read(): Promise<Authorization> {
      const headers = { 'x-correlation-id': correlationId }
      const {
        sessionId,
        capabilities = {},
        expiresAt,
        renewableUntil,
      } = await core.sessions.authorizeGrant({ credentials, expiredToo }, { headers })
      call.expiresAt = expiresAt === undefined ? 0 : timestampMs(expiresAt)
      call.renewableUntil = renewableUntil === undefined ? 0 : timestampMs(renewableUntil)
      return { sessionId, capabilities }
    }
  }

  function authorizeWithin(
    maxAge: number,
    credentials: Credentials,
    correlationId: string,
    expiredToo = false,
  ): Promise<Authorization> {
    const key = keyOf(credentials)
    const call = calls.get(key)
    const isFresh = call !== undefined && now() - call.startedAt <= maxAge && isAccepted(call, expiredToo)
    return isFresh ? call.answer : ask(key, credentials, correlationId, expiredToo)
  }

  /**
   * Whether the answer of a call applies to a request with this `expiredToo` now. The call may
   * still be pending.
   */
  function isAccepted({ expiredToo: wasExpiredToo, expiresAt, renewableUntil }: Call, expiredToo: boolean): boolean {
    if (expiresAt === Number.POSITIVE_INFINITY) return wasExpiredToo === expiredToo
    return now() < expiresAt || (expiredToo && now() < renewableUntil)
  }

  return {
    authorize: (credentials, correlationId) => authorizeWithin(FRESH_MS, credentials, correlationId),
    authorizeClosedToo: (credentials, correlationId) =>
      core.sessions.authorizeGrant(
        { credentials, closedToo: true },
        { headers: { 'x-correlation-id': correlationId } },
      ),
    authorizeExpiredToo: (credentials, correlationId) => authorizeWithin(FRESH_MS, credentials, correlationId, true),
    confirm: (credentials, correlationId, expiredToo) =>
      authorizeWithin(RECHECK_MS, credentials, correlationId, expiredToo),
    forget: (credentials) => void calls.delete(keyOf(credentials)),
  }
}

const keyOf = ({ origin, accessGrant }: Credentials) => `${origin} ${accessGrant}`
