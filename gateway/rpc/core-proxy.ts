import type { Readable } from 'node:stream'
import { Agent, type Dispatcher } from 'undici'
import type { Core, CorePool, Failure } from '../../core-client/core-pool.ts'
import { systemCodes, wasNeverSent } from '../../core-client/system-codes.ts'
import type { TlsFiles } from '../../platform/tls/tls-files.ts'
import { unavailable } from '../errors.ts'
import type { OperatorMethod } from './operator-methods.ts'

export interface ProxiedCall {
  method: OperatorMethod
  headers: Record<string, string>
  body: Buffer
  /** Whoever called is gone. */
  signal: AbortSignal
}

export interface ProxiedAnswer {
  status: number
  headers: Dispatcher.ResponseData['headers']
  body: Readable
}

export interface CoreProxy {
  /** Errors: `ServiceUnavailable` while no core is within reach. */
  call(call: ProxiedCall): Promise<ProxiedAnswer>
  close(): Promise<void>
}

const CONNECT_WITHIN_MS = 3_000
/** More than the longest pause between heartbeats that a core can be set to. */
const STREAM_SILENCE_MAX_MS = 330_000

/** Calls as they are, to one of the cores: the bytes of the Connect protocol over HTTP. */
export function createCoreProxy(options: {
  cores: CorePool
  /** Of cores with TLS. */
  tls?: TlsFiles | undefined
  deadlineMs: number
}): CoreProxy {
  const { cores, deadlineMs, tls } = options
  const timeout = Math.min(deadlineMs, CONNECT_WITHIN_MS)
  let material = tls?.current()
  let agent = new Agent({ connect: { timeout, ...material } })

  /** Connections with the certificates as they are now; those before end with their calls. */
  function latestAgent() {
    const found = tls?.current()
    if (found !== material) {
      void agent.close()
      material = found
      agent = new Agent({ connect: { timeout, ...material } })
    }
    return agent
  }

  async function request(core: Core, { method, headers, body, signal }: ProxiedCall): Promise<ProxiedAnswer> {
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

  function judge(error: unknown, { method, signal }: ProxiedCall): Failure {
    if (signal.aborted) return 'abandoned'
    const tooLate = systemCodes(error).includes('UND_ERR_HEADERS_TIMEOUT')
    return !tooLate && (wasNeverSent(error) || method.repeatable) ? 'repeatable' : 'lost'
  }

  return {
    call: (call) =>
      cores
        .call(
          (core) => request(core, call),
          (error) => judge(error, call),
        )
        .catch((error) => {
          throw unavailable(error)
        }),
    close: () => agent.destroy(),
  }
}
