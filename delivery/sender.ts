import type { Socket } from 'node:net'
import { AttemptPhase, type ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { parseDestinationUrl } from '../contract/destination-url.ts'
import { contractLimits } from '../contract/limits.ts'
import { DestinationBlockedError, type Resolver } from '../platform/addresses/resolve.ts'
import { parseRetryAfter } from '../platform/http/retry-after.ts'
import { createConnections } from './connections.ts'
import { classifyFailure, type Failure, isConnectionLost } from './failures.ts'
import { type Dial, openSocket } from './open-socket.ts'
import { readAnswer } from './read-answer.ts'

/** As the worker reports it to a core. */
export type Outcome =
  | { case: 'response'; value: Answer }
  | { case: 'failure'; value: Failure }
  | { case: 'released'; value: Record<string, never> }

export type ReadyRequest = Pick<ClaimedDelivery, 'url' | 'headers' | 'body' | 'deadlineMs'>

export type Sender = ReturnType<typeof createSender>

export interface SenderOptions {
  resolver: Resolver
  /** Bytes that are read of a response. */
  responseMaxBytes?: number
  maxIdle?: number
  now?: () => number
  dial?: Dial | undefined
  /** Authorities (PEM) instead of Node's, for tests. */
  ca?: string | undefined
}

/**
 * Sends prepared requests (contract, section 5). Each attempt resolves its destination again and checks
 * every address; an idle connection is reused only for one of them. Redirects are not followed, and proxies
 * not used. One deadline covers the attempt, and `responseMaxBytes` all that the destination sends.
 */
export function createSender(options: SenderOptions) {
  const { resolver, responseMaxBytes = 65_536, maxIdle = 256, now = Date.now, dial, ca } = options
  const connections = createConnections({ maxIdle })

  async function attempt(request: ReadyRequest, signal: AbortSignal, onPhase: (phase: AttemptPhase) => void) {
    onPhase(AttemptPhase.RESOLVE)
    const url = parseDestinationUrl(request.url)
    if (url === undefined) throw new DestinationBlockedError()
    const addresses = await resolver.resolve(url.hostname, signal)

    const kept = connections.take(url.origin, addresses)
    const answered = kept && (await exchangeUnlessStale(kept, url, request, signal, onPhase))
    if (answered) return answered
    return exchange(await openSocket({ url, addresses, signal, onPhase, dial, ca }), url, request, signal, onPhase)
  }

  /**
   * Undefined if the server closed the idle connection before it answered, as it may at any time. Then a
   * new connection is used.
   */
  async function exchangeUnlessStale(kept: Socket, ...rest: ExchangeRest): Promise<Answer | undefined> {
    const { bytesRead } = kept
    try {
      return await exchange(kept, ...rest)
    } catch (error) {
      const [, , signal] = rest
      if (signal.aborted || kept.bytesRead > bytesRead || !isConnectionLost(error)) throw error
      return undefined
    }
  }

  async function exchange(socket: Socket, ...[url, request, signal, onPhase]: ExchangeRest): Promise<Answer> {
    onPhase(AttemptPhase.HEADERS)
    const onHeaders = () => onPhase(AttemptPhase.BODY)
    const answer = await readAnswer(socket, { url, request, signal, maxBytes: responseMaxBytes, onHeaders })
    const { status, headers, beginning, isReusable } = answer
    if (isReusable) connections.give(url.origin, socket)
    else socket.destroy()
    const retryAfterMs = parseRetryAfter(headers['retry-after'], now())
    const isText = beginning.length > 0 && headers['content-encoding'] === undefined
    const text = isText ? responseText(beginning) : ''
    return {
      status,
      ...(text !== '' && { text }),
      ...(retryAfterMs !== undefined && { retryAfterMs: BigInt(retryAfterMs) }),
    }
  }

  return {
    /**
     * Never rejects. If the signal aborts before the request was sent, the outcome is `released`. If part
     * of it was sent, it is a failure.
     */
    async send(request: ReadyRequest, signal: AbortSignal): Promise<Outcome> {
      const end = new AbortController()
      let timedOut = false
      const timer = setTimeout(() => {
        timedOut = true
        end.abort(new Error('deadline exceeded'))
      }, request.deadlineMs)
      const release = () => end.abort(new Error('worker stopping'))
      if (signal.aborted) release()
      else signal.addEventListener('abort', release)
      let phase = AttemptPhase.RESOLVE
      try {
        const answer = await attempt(request, end.signal, (next) => {
          phase = next
        })
        return { case: 'response', value: answer }
      } catch (error) {
        const isAborted = end.signal.aborted && !timedOut
        if (isAborted && phase < AttemptPhase.HEADERS) return { case: 'released', value: {} }
        return { case: 'failure', value: classifyFailure(error, phase, timedOut) }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', release)
      }
    },
    idleConnections: connections.idle,
    close: connections.close,
  }
}

interface Answer {
  status: number
  retryAfterMs?: bigint
  /** Beginning of the body, on one line. Absent for an accepted request. */
  text?: string
}

type ExchangeRest = [url: URL, request: ReadyRequest, signal: AbortSignal, onPhase: (phase: AttemptPhase) => void]

/** The first characters on one line, without control and format characters. */
function responseText(beginning: Buffer[]) {
  const line = new TextDecoder()
    .decode(Buffer.concat(beginning))
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  return [...line].slice(0, contractLimits.responseTextMaxLength).join('').trimEnd()
}
