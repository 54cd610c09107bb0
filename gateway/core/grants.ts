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
  /** When the core was asked. */
  checkedAt: number
}

/** Grants that a core has authorised, and nothing else: a refusal is never kept. */
export interface Grants {
  /** What is known of the grant, not older than the fresh age, or the core's word; rejects with the core's refusal. */
  authorize(credentials: Credentials, correlationId: string): Promise<Authorization>
  /** The core's word, which lets a closed session pass; it is not kept. */
  authorizeClosedToo(credentials: Credentials, correlationId: string): Promise<{ sessionId: string }>
  /** As `authorize`, but not older than the recheck age. */
  confirm(credentials: Credentials, correlationId: string): Promise<Authorization>
  forget(credentials: Credentials): void
}

/** A question to the core that is under way. */
interface Asked {
  at: number
  answer: Promise<Authorization>
}

/**
 * A bounded cache of authorised grants. The core authorises each call again; the cache lets the gateway name the session
 * and answer in the order of checks without a call of its own. An entry has a maximum age, counted from the question.
 */
export function createGrants(options: {
  core: Core
  max: number
  freshMs: number
  recheckMs: number
  now: () => number
}): Grants {
  const { core, max, freshMs, recheckMs, now } = options
  const known = new LRUCache<string, Authorization>({ max })
  const asked = new Map<string, Asked>()

  function ask(key: string, credentials: Credentials, correlationId: string): Promise<Authorization> {
    const at = now()
    const question: Asked = { at, answer: read(credentials, correlationId, at) }
    asked.set(key, question)
    // An answer counts for the cache only if nothing overtook its question.
    const isLast = () => asked.get(key) === question
    question.answer.then(
      (authorization) => void (isLast() && asked.delete(key) && known.set(key, authorization)),
      () => void (isLast() && asked.delete(key) && known.delete(key)),
    )
    return question.answer
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

  function within(maxAge: number, credentials: Credentials, correlationId: string): Promise<Authorization> {
    const key = keyOf(credentials)
    const found = known.get(key)
    const isFresh = found !== undefined && now() < found.expiresAt && now() - found.checkedAt <= maxAge
    if (isFresh) return Promise.resolve(found)
    const pending = asked.get(key)
    if (pending !== undefined && now() - pending.at <= maxAge) return pending.answer
    return ask(key, credentials, correlationId)
  }

  return {
    authorize: (credentials, correlationId) => within(freshMs, credentials, correlationId),
    authorizeClosedToo: (credentials, correlationId) =>
      core.sessions.authorizeGrant(
        { credentials, closedToo: true },
        { headers: { 'x-correlation-id': correlationId } },
      ),
    confirm: (credentials, correlationId) => within(recheckMs, credentials, correlationId),
    forget(credentials) {
      const key = keyOf(credentials)
      known.delete(key)
      asked.delete(key)
    },
  }
}

const keyOf = ({ origin, accessGrant }: Credentials) => `${origin} ${accessGrant}`
