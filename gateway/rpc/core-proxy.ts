import type { Readable } from 'node:stream'
import { Agent, type Dispatcher } from 'undici'
import { createCandidates } from '../../core-client/candidates.ts'
import { systemCodes, wasNeverSent } from '../../core-client/system-codes.ts'
import type { TlsFiles } from '../../tls/tls-files.ts'
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
  urls: string[]
  /** Of cores with TLS. */
  tls?: TlsFiles | undefined
  deadlineMs: number
  now: () => number
}): CoreProxy {
  const { deadlineMs, tls } = options
  const candidates = createCandidates(
    options.urls.map((url) => new URL(url)),
    options.now,
  )
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

  return {
    async call({ method, headers, body, signal }) {
      let failure = unavailable()
      for (const candidate of candidates.inTurn()) {
        const { origin, pathname } = candidate.core
        try {
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
          candidates.answered(candidate)
          return { status: answer.statusCode, headers: answer.headers, body: answer.body }
        } catch (error) {
          failure = unavailable(error)
          if (signal.aborted) break
          candidates.setAside(candidate)
          const tooLate = systemCodes(error).includes('UND_ERR_HEADERS_TIMEOUT')
          if (tooLate || !(wasNeverSent(error) || method.repeatable)) break
        }
      }
      throw failure
    },
    close: () => agent.destroy(),
  }
}
