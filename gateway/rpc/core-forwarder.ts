import type { Readable } from 'node:stream'
import type { DescMethod } from '@bufbuild/protobuf'
import type { FastifyReply } from 'fastify'
import type { CoreNode, Failure } from '../../core-client/core-pool.ts'
import type { CoreAnswer, CoreRequest } from '../../core-client/http-client.ts'
import { systemCodes, wasNeverSent } from '../../core-client/system-codes.ts'
import { callBudgetOf } from '../core-calls/core-clients.ts'
import type { Gateway } from '../gateway.ts'
import { isRepeatable, isStream, pathOf, waitMaxMs } from './forwarded-methods.ts'

type ReplyOptions = Parameters<FastifyReply['from']>[1]

interface ForwardedCall {
  method: DescMethod
  signal: AbortSignal
}

/** How long a stream may send no bytes: longer than the longest heartbeat interval of a core. */
const STREAM_SILENCE_MAX_MS = 330_000

/** Forwards calls with `reply.from` of `@fastify/http-proxy`, over the connections of the pool. */
export function createCoreForwarder(gateway: Gateway) {
  const deadlineMs = gateway.config.CORE_DEADLINE_MS
  /** The call for which `reply.from` is running. It calls `request` before it returns. */
  let current: (ForwardedCall & { core: CoreNode }) | undefined

  function send(core: CoreNode, reply: FastifyReply, call: ForwardedCall, from: ReplyOptions): Promise<Readable> {
    return new Promise((resolve, reject) => {
      current = { ...call, core }
      reply.from(pathOf(call.method), {
        ...from,
        getUpstream: () => new URL(core.url).origin,
        onError: (_reply, { error }) => reject(error.cause ?? error),
        onResponse: (_request, _reply, answer) => resolve((answer as unknown as { stream: Readable }).stream),
      })
      current = undefined
    })
  }

  function classifyFailure(error: unknown, { method, signal }: ForwardedCall): Failure {
    if (signal.aborted) return 'abandoned'
    const isTimeout = systemCodes(error).includes('UND_ERR_HEADERS_TIMEOUT')
    return !isTimeout && (wasNeverSent(error) || isRepeatable(method)) ? 'repeatable' : 'lost'
  }

  return {
    /** The HTTP client of `@fastify/http-proxy`. */
    client: {
      request({ path, headers, body }: CoreRequest, done: (error: Error | null, answer?: CoreAnswer) => void) {
        const { core, method, signal } = current!
        const bodyTimeout = isStream(method) ? STREAM_SILENCE_MAX_MS : deadlineMs
        const headersTimeout = deadlineMs + waitMaxMs(method)
        core.request({ path, headers, body, signal, headersTimeout, bodyTimeout }).then(
          (answer) => done(null, answer),
          (error) => done(error),
        )
      },
    },
    /**
     * Resolves to the body of the answer, whose status and headers `reply` then has; fails over while the
     * call may be repeated. Rejects if no core answers.
     */
    forward: (reply: FastifyReply, call: ForwardedCall, from: ReplyOptions): Promise<Readable> =>
      callBudgetOf(gateway).run(() =>
        gateway.cores.call(
          (core) => send(core, reply, call, from),
          (error) => classifyFailure(error, call),
        ),
      ),
  }
}
