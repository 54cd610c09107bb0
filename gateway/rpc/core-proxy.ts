import type { Readable } from 'node:stream'
import { Agent, type Dispatcher } from 'undici'
import type { CoreNode, CorePool, Failure } from '../../core-client/core-pool.ts'
import { systemCodes, wasNeverSent } from '../../core-client/system-codes.ts'
import type { TlsFiles } from '../../platform/tls/tls-files.ts'
import { unavailable } from '../errors.ts'
import type { OperatorMethod } from './operator-methods.ts'

export interface ProxiedCall {
  method: OperatorMethod
  headers: Record<string, string>
  body: Buffer
  /** Aborted when the client disconnects. */
  signal: AbortSignal
}

export interface ProxiedAnswer {
  status: number
  headers: Dispatcher.ResponseData['headers']
  body: Readable
}

export interface CoreProxy {
  /** @throws GatewayError `ServiceUnavailable` if no core is reachable */
  call(call: ProxiedCall): Promise<ProxiedAnswer>
  close(): Promise<void>
}

const CONNECT_TIMEOUT_MS = 3_000
/** Longer than the longest heartbeat interval that a core can be configured with. */
const STREAM_SILENCE_MAX_MS = 330_000

/** Forwards Connect calls unchanged to one of the cores, over HTTP/1.1. */
export function createCoreProxy(options: {
  cores: CorePool
  /** Certificates for cores with TLS. */
  tls?: TlsFiles | undefined
  deadlineMs: number
}): CoreProxy {
  const { cores, deadlineMs, tls } = options
  const timeout = Math.min(deadlineMs, CONNECT_TIMEOUT_MS)
  let material = tls?.current()
  let agent = new Agent({ connect: { timeout, ...material } })

  /**
   * Returns an agent with the current certificates. Connections of the old agent end with their
   * calls.
   */
  function latestAgent() {
    const found = tls?.current()
    if (found !== material) {
      void agent.close()
      material = found
      agent = new Agent({ connect: { timeout, ...material } })
    }
    return agent
  }

  async function request(core: CoreNode, { method, headers, body, signal }: ProxiedCall): Promise<ProxiedAnswer> {
    const { origin, pathname } = new URL(core.url)
    const answer = await latestAgent().request({
      origin,
      path: `${pathname.replace(/\/$/, '')}${method.path}`,
      method: 'POST',
      headers,
      body,
      signal,
      headersTimeout: deadlineMs,
      bodyTimeout: method.streaming ? STREAM_SILENCE_MAX_MS : deadlineMs,
    })
    return { status: answer.statusCode, headers: answer.headers, body: answer.body }
  }

  function classifyFailure(error: unknown, { method, signal }: ProxiedCall): Failure {
    if (signal.aborted) return 'abandoned'
    const isTimeout = systemCodes(error).includes('UND_ERR_HEADERS_TIMEOUT')
    return !isTimeout && (wasNeverSent(error) || method.repeatable) ? 'repeatable' : 'lost'
  }

  return {
    call: (call) =>
      cores
        .call(
          (core) => request(core, call),
          (error) => classifyFailure(error, call),
        )
        .catch((error) => {
          throw unavailable(error)
        }),
    close: () => agent.destroy(),
  }
}
