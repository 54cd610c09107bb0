import { timestampMs } from '@bufbuild/protobuf/wkt'
import { LRUCache } from 'lru-cache'
import type { AuthorizeGrantResponse } from '#proto/session/v1/session_pb.js'
import type { CoreClients } from './core-clients.ts'

/** Credentials that the browser sent. The core verifies them on every call. */
export interface Credentials {
  accessGrant: string
  origin: string
}

/** The capabilities of the session's installation. */
export type Capabilities = Omit<NonNullable<AuthorizeGrantResponse['capabilities']>, '$typeName' | '$unknown'>

/** A grant that a core has authorised. */
export interface Authorization {
  sessionId: string
  capabilities: Capabilities
  /** Milliseconds since 1970. */
  expiresAt: number
  /** When the core was asked. */
  checkedAt: number
}

/** Cache of authorised grants. Refusals are never cached. */
export interface GrantCache {
  /**
   * Returns an authorisation not older than `freshMs`, else asks a core. Rejects with its refusal.
   */
  authorize(credentials: Credentials, correlationId: string): Promise<Authorization>
  /** Asks a core and accepts a closed session. The result is not cached. */
  authorizeClosedToo(credentials: Credentials, correlationId: string): Promise<{ sessionId: string }>
  /** Like `authorize`, but not older than `recheckMs`. */
  confirm(credentials: Credentials, correlationId: string): Promise<Authorization>
  forget(credentials: Credentials): void
}

/** A pending call to a core. */
interface PendingCall {
  at: number
  answer: Promise<Authorization>
}

/**
 * A bounded cache of authorised grants. The core authorises each call again. With the cache the
 * gateway knows the session and runs its checks in order without an extra call. The age of an entry
 * counts from the start of its call.
 */
export function createGrantCache(options: {
  core: CoreClients
  max: number
  freshMs: number
  recheckMs: number
  now: () => number
}): GrantCache {
  const { core, max, freshMs, recheckMs, now } = options
  const known = new LRUCache<string, Authorization>({ max })
  const pending = new Map<string, PendingCall>()

  function ask(key: string, credentials: Credentials, correlationId: string): Promise<Authorization> {
    const at = now()
    const call: PendingCall = { at, answer: read(credentials, correlationId, at) }
    pending.set(key, call)
    // An answer is cached only if no later call or `forget` replaced this one.
    const isLatest = () => pending.get(key) === call
    call.answer.then(
      (authorization) => void (isLatest() && pending.delete(key) && known.set(key, authorization)),
      () => void (isLatest() && pending.delete(key) && known.delete(key)),
    )
    return call.answer
  }

  async function read(credentials: Credentials, correlationId: string, checkedAt: number): Promise<Authorization> {
    const answer = await core.sessions.authorizeGrant(
      { credentials },
      { headers: { 'x-correlation-id': correlationId } },
    )
    const expiresAt = answer.expiresAt === undefined ? 0 : timestampMs(answer.expiresAt)
    const { sessionId, capabilities = {} } = answer
    return { sessionId, capabilities, expiresAt, checkedAt }
  }

  function authorizeWithin(maxAge: number, credentials: Credentials, correlationId: string): Promise<Authorization> {
    const key = keyOf(credentials)
    const found = known.get(key)
    const isFresh = found !== undefined && now() < found.expiresAt && now() - found.checkedAt <= maxAge
    if (isFresh) return Promise.resolve(found)
    const call = pending.get(key)
    if (call !== undefined && now() - call.at <= maxAge) return call.answer
    return ask(key, credentials, correlationId)
  }

  return {
    authorize: (credentials, correlationId) => authorizeWithin(freshMs, credentials, correlationId),
    authorizeClosedToo: (credentials, correlationId) =>
      core.sessions.authorizeGrant(
        { credentials, closedToo: true },
        { headers: { 'x-correlation-id': correlationId } },
      ),
    confirm: (credentials, correlationId) => authorizeWithin(recheckMs, credentials, correlationId),
    forget(credentials) {
      const key = keyOf(credentials)
      known.delete(key)
      pending.delete(key)
    },
  }
}

const keyOf = ({ origin, accessGrant }: Credentials) => `${origin} ${accessGrant}`
