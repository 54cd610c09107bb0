import { timestampMs } from '@bufbuild/protobuf/wkt'
import { LRUCache } from 'lru-cache'
import type { AuthorizeGrantResponse } from '#proto/session/v1/session_pb.js'
import type { Core } from './core.ts'

/** What the browser said of itself; the core verifies it at every call. */
export interface Credentials {
  accessGrant: string
  origin: string
}

/** What the session's installation advertises. */
export type Capabilities = Omit<NonNullable<AuthorizeGrantResponse['capabilities']>, '$typeName' | '$unknown'>

/** A grant that the core has authorised. */
export interface Authorization {
  sessionId: string
  capabilities: Capabilities
  /** Milliseconds since 1970. */
  expiresAt: number
  checkedAt: number
}

/** Grants that a core has authorised, and nothing else: a refusal is never kept. */
export interface Grants {
  /** What is known of the grant, or the core's word; rejects with the core's refusal. */
  authorize(credentials: Credentials, correlationId: string): Promise<Authorization>
  /** The core's word, which lets a closed session pass; it is not kept. */
  authorizeClosedToo(credentials: Credentials, correlationId: string): Promise<{ sessionId: string }>
  /** As `authorize`, but not older than the recheck age. */
  confirm(credentials: Credentials, correlationId: string): Promise<Authorization>
  forget(credentials: Credentials): void
}

/**
 * A bounded memory of authorised grants. It decides nothing that the core does not decide again in the call itself: it
 * only lets the gateway name the session and answer in the order of checks without a call of its own.
 */
export function createGrants(options: { core: Core; max: number; recheckMs: number; now: () => number }): Grants {
  const known = new LRUCache<string, Authorization>({ max: options.max })
  const asked = new Map<string, Promise<Authorization>>()

  async function ask(key: string, credentials: Credentials, correlationId: string): Promise<Authorization> {
    try {
      const checkedAt = options.now()
      const answer = await options.core.sessions.authorizeGrant(
        { credentials },
        { headers: { 'x-correlation-id': correlationId } },
      )
      const expiresAt = answer.expiresAt === undefined ? 0 : timestampMs(answer.expiresAt)
      const { sessionId, capabilities = {} } = answer
      const authorization = { sessionId, capabilities, expiresAt, checkedAt }
      known.set(key, authorization)
      return authorization
    } catch (error) {
      known.delete(key)
      throw error
    } finally {
      asked.delete(key)
    }
  }

  function within(maxAge: number, credentials: Credentials, correlationId: string): Promise<Authorization> {
    const key = keyOf(credentials)
    const found = known.get(key)
    const now = options.now()
    if (found !== undefined && now < found.expiresAt && now - found.checkedAt <= maxAge) return Promise.resolve(found)
    const pending = asked.get(key) ?? ask(key, credentials, correlationId)
    asked.set(key, pending)
    return pending
  }

  return {
    authorize: (credentials, correlationId) => within(Number.POSITIVE_INFINITY, credentials, correlationId),
    authorizeClosedToo: (credentials, correlationId) =>
      options.core.sessions.authorizeGrant(
        { credentials, closedToo: true },
        { headers: { 'x-correlation-id': correlationId } },
      ),
    confirm: (credentials, correlationId) => within(options.recheckMs, credentials, correlationId),
    forget: (credentials) => void known.delete(keyOf(credentials)),
  }
}

const keyOf = ({ origin, accessGrant }: Credentials) => `${origin} ${accessGrant}`
