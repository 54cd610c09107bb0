import { AsyncLocalStorage } from 'node:async_hooks'
import { Agent, type Dispatcher } from 'undici'
import type { CoreNode, CorePool, Failure } from '../../core-client/core-pool.ts'
import { withCurrentTls } from '../../core-client/core-tls.ts'
import { systemCodes, wasNeverSent } from '../../core-client/system-codes.ts'
import type { TlsFiles } from '../../platform/tls/tls-files.ts'
import type { CallBudget } from '../core/bounded-transport.ts'
import { unavailable } from '../errors.ts'
import type { OperatorMethod } from './operator-methods.ts'

/** An operator's call while it is proxied. */
interface ProxiedCall {
  method: OperatorMethod
  /** Aborted when the client disconnects. */
  signal: AbortSignal
}

type Answer = Dispatcher.ResponseData
/** The fields of a request that `@fastify/http-proxy` passes to its HTTP client. */
type ProxiedRequest = Pick<Dispatcher.RequestOptions, 'path' | 'headers' | 'body'>

/** The HTTP client of `@fastify/http-proxy`. Sends each call to one of the cores. */
interface CoreDispatcher {
  /** Runs `send`. Requests that `send` makes belong to this call. */
  within<Result>(call: ProxiedCall, send: () => Result): Result
  /** If the call fails, passes `ServiceUnavailable` to `done`. */
  request(request: ProxiedRequest, done: (error: Error | null, answer?: Answer) => void): void
  close(): Promise<void>
}

const CONNECT_TIMEOUT_MS = 3_000
/** Timeout for a stream without bytes. It exceeds the longest heartbeat interval of a core. */
const STREAM_SILENCE_MAX_MS = 330_000

/** Creates a client of the cores over HTTP/1.1, with failover. */
export function createCoreDispatcher(options: {
  cores: CorePool
  budget: CallBudget
  /** Certificates for cores with TLS. */
  tls?: TlsFiles | undefined
  deadlineMs: number
}): CoreDispatcher {
  const { cores, budget, deadlineMs, tls } = options
  const timeout = Math.min(deadlineMs, CONNECT_TIMEOUT_MS)
  const calls = new AsyncLocalStorage<ProxiedCall>()
  // After a change of certificates, connections of the old agent end with their calls.
  const latestAgent = withCurrentTls(
    tls,
    (material) => new Agent({ connect: { timeout, ...material } }),
    (agent) => void agent.close(),
  )

  function send(core: CoreNode, { method, signal }: ProxiedCall, { path, headers, body }: ProxiedRequest) {
    const { origin, pathname } = new URL(core.url)
    return latestAgent().request({
      origin,
      path: `${pathname.replace(/\/$/, '')}${path}`,
      method: 'POST',
      headers,
      body,
      signal,
      headersTimeout: deadlineMs,
      bodyTimeout: method.streaming ? STREAM_SILENCE_MAX_MS : deadlineMs,
    })
  }

  function classifyFailure(error: unknown, { method, signal }: ProxiedCall): Failure {
    if (signal.aborted) return 'abandoned'
    const isTimeout = systemCodes(error).includes('UND_ERR_HEADERS_TIMEOUT')
    return !isTimeout && (wasNeverSent(error) || method.repeatable) ? 'repeatable' : 'lost'
  }

  return {
    within: (call, run) => calls.run(call, run),
    request(request, done) {
      const call = calls.getStore()!
      const answer = budget.run(() =>
        cores.call(
          (core) => send(core, call, request),
          (error) => classifyFailure(error, call),
        ),
      )
      answer.then(
        (found) => done(null, found),
        (error) => done(unavailable(error)),
      )
    },
    close: () => latestAgent().destroy(),
  }
}
