import { timestampMs } from '@bufbuild/protobuf/wkt'
import type { AuthorizeGrantResponse, SessionContent } from '#proto/session/v1/session_pb.js'
import { createLruCache } from '../../platform/lru-cache.ts'
import { perGateway } from '../gateway.ts'
import { GRANTS_MAX } from '../limits/refusals.ts'
import { coreOf } from './core-clients.ts'

/** Credentials that the browser sent. The core verifies them on every call. */
export interface Credentials {
  accessGrant: string
  origin: string
}

export type Capabilities = Omit<NonNullable<AuthorizeGrantResponse['capabilities']>, '$typeName' | '$unknown'>

interface Authorization {
  sessionId: string
  /** Undefined if no core was asked since the grant was issued. */
  capabilities: Capabilities | undefined
}

interface Call {
  /** Time of the call; -Infinity if no core was asked. */
  startedAt: number
  expiredToo: boolean
  answer: Promise<Authorization>
  /** The answer; undefined while pending. Times are in milliseconds since 1970. */
  known: (Authorization & { expiresAt: number; renewableUntil: number }) | undefined
}

const RECHECK_MS = 250

/**
 * Caches authorized grants, but no refusals. An authorization is used until its grant expires, because
 * the core authorizes each call itself. Before the gateway itself refuses, it must call `confirm`,
 * because the session may have ended. An age counts from the start of the call.
 */
export const grantsOf = perGateway((gateway) => {
  const { now } = gateway.clock
  const { sessions } = coreOf(gateway)
  // The LRU cache's `fetchMethod` would reuse every pending call, also one too old for `confirm`.
  const calls = createLruCache<Call>(GRANTS_MAX)

  function ask(credentials: Credentials, correlationId: string, expiredToo: boolean) {
    const key = keyOf(credentials)
    const call: Call = { startedAt: now(), expiredToo, answer: read(), known: undefined }
    calls.set(key, call)
    call.answer.catch(() => {
      if (calls.peek(key) === call) calls.delete(key)
    })
    return call.answer

    async function read(): Promise<Authorization> {
      const options = { headers: { 'x-correlation-id': correlationId } }
      const answer = await sessions.authorizeGrant({ credentials, expiredToo }, options)
      const { sessionId, capabilities = {} as Capabilities } = answer
      call.known = { sessionId, capabilities, ...endsOf(answer) }
      return call.known
    }
  }

  /**
   * Whether a request may use the answer of an earlier call. A pending call must have the same
   * `expiredToo`. An answered one is used until the grant expires, and with `expiredToo` while the
   * session can be renewed.
   */
  function isAccepted({ expiredToo: wasExpiredToo, known }: Call, expiredToo: boolean) {
    if (known === undefined) return wasExpiredToo === expiredToo
    return now() < known.expiresAt || (expiredToo && now() < known.renewableUntil)
  }

  /** Rejects if the core refuses. `expiredToo` accepts an expired grant while its session can be renewed. */
  function authorize(
    credentials: Credentials,
    correlationId: string,
    expiredToo: boolean,
    maxAgeMs = Number.POSITIVE_INFINITY,
  ) {
    const call = calls.get(keyOf(credentials))
    const isUsable = call !== undefined && now() - call.startedAt <= maxAgeMs && isAccepted(call, expiredToo)
    return isUsable ? call.answer : ask(credentials, correlationId, expiredToo)
  }

  return {
    known(credentials: Credentials, expiredToo: boolean): Authorization | undefined {
      const call = calls.get(keyOf(credentials))
      return call?.known !== undefined && isAccepted(call, expiredToo) ? call.known : undefined
    },
    authorize,
    /** Asks a core and accepts a closed session. The answer is not cached. */
    authorizeClosedToo: (credentials: Credentials, correlationId: string): Promise<{ sessionId: string }> =>
      sessions.authorizeGrant({ credentials, closedToo: true }, { headers: { 'x-correlation-id': correlationId } }),
    /** Returns an authorization that is at most `RECHECK_MS` old. Rejects if the core refuses. */
    confirm: (credentials: Credentials, correlationId: string, expiredToo: boolean) =>
      authorize(credentials, correlationId, expiredToo, RECHECK_MS),
    /** Caches the grant that a core has just issued. Its capabilities are unknown, so `confirm` does not use it. */
    remember(origin: string, { accessGrant, sessionId, ...session }: SessionContent) {
      const known = { sessionId, capabilities: undefined, ...endsOf(session) }
      const call = { startedAt: Number.NEGATIVE_INFINITY, expiredToo: false, answer: Promise.resolve(known), known }
      calls.set(keyOf({ origin, accessGrant }), call)
    },
    forget: (credentials: Credentials) => void calls.delete(keyOf(credentials)),
  }
})

/** Returns times in milliseconds since 1970; 0 for missing ones. */
const endsOf = ({ expiresAt, renewableUntil }: Pick<SessionContent, 'expiresAt' | 'renewableUntil'>) => ({
  expiresAt: expiresAt ? timestampMs(expiresAt) : 0,
  renewableUntil: renewableUntil ? timestampMs(renewableUntil) : 0,
})

const keyOf = ({ origin, accessGrant }: Credentials) => `${origin} ${accessGrant}`
