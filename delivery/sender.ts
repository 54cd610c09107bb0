import { AttemptPhase, type ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { contractLimits } from '../contract/limits.ts'
import { parseDestinationUrl } from '../platform/addresses/destination-url.ts'
import type { ResolvedAddress } from '../platform/addresses/name-service.ts'
import { DestinationBlockedError, type Resolver } from '../platform/addresses/resolve.ts'
import { parseRetryAfter } from '../platform/http/retry-after.ts'
import { type Connection, createConnections } from './connections.ts'
import { classifyFailure, type Failure, isConnectionLost, ProtocolError } from './failures.ts'
import { type Dial, openSocket } from './open-socket.ts'
import { readAnswer } from './read-answer.ts'

/** Outcome of an attempt, as the worker reports it to a core. */
export type Outcome =
  | { case: 'response'; value: Answer }
  | { case: 'failure'; value: Failure }
  | { case: 'released'; value: Record<string, never> }

/** A request that the core has prepared and signed. */
export type ReadyRequest = Pick<ClaimedDelivery, 'url' | 'headers' | 'body' | 'deadlineMs'>

export interface Sender {
  /**
   * Makes one attempt. Never rejects. If the signal aborts before the request was sent, the outcome
   * is `released` (not sent). If part of the request was sent, the outcome is a failure.
   */
  send(request: ReadyRequest, signal: AbortSignal): Promise<Outcome>
  /** Number of idle connections. */
  idleConnections(): number
  close(): Promise<void>
}

export interface SenderOptions {
  resolver: Resolver
  responseMaxBytes: number
  /** Maximum number of idle connections. */
  maxIdle: number
  now?: () => number
  dial?: Dial | undefined
  ca?: string | undefined
}

/**
 * Sends prepared requests (contract, section 5). Each attempt resolves its destination again and
 * checks every address. An idle connection is reused only if its address is one of these addresses.
 * Redirects are not followed, and proxies are not used. One deadline covers the whole attempt. At
 * most `responseMaxBytes` of a response are read. If a response is longer, its status is the
 * result, and its connection is closed.
 */
export function createSender(options: SenderOptions): Sender {
  const { resolver, responseMaxBytes, maxIdle, now = Date.now, dial, ca } = options
  const connections = createConnections({ maxIdle })

  async function attempt(request: ReadyRequest, signal: AbortSignal, onPhase: (phase: AttemptPhase) => void) {
    onPhase(AttemptPhase.RESOLVE)
    const url = parseDestinationUrl(request.url)
    if (url === undefined) throw new DestinationBlockedError()
    const addresses = await resolver.resolve(url.hostname, signal)

    const kept = connections.take(url.origin, addresses)
    const answered = kept && (await exchangeUnlessStale(kept, url, request, signal, onPhase))
    return answered ?? exchange(await open(url, addresses, signal, onPhase), url, request, signal, onPhase)
  }

  async function open(
    url: URL,
    addresses: ResolvedAddress[],
    signal: AbortSignal,
    onPhase: (phase: AttemptPhase) => void,
  ): Promise<Connection> {
    return connections.adopt(url.origin, await openSocket({ url, addresses, signal, onPhase, dial, ca }))
  }

  /**
   * Returns undefined if the server closed the idle connection before it answered, as servers may
   * do at any time. The caller then sends the request again over a new connection.
   */
  async function exchangeUnlessStale(kept: Connection, ...rest: ExchangeRest): Promise<Answer | undefined> {
    const { bytesRead } = kept.socket
    try {
      return await exchange(kept, ...rest)
    } catch (error) {
      const [, , signal] = rest
      if (signal.aborted || kept.socket.bytesRead > bytesRead || !isConnectionLost(error)) throw error
      return undefined
    }
  }

  async function exchange(connection: Connection, ...[url, request, signal, onPhase]: ExchangeRest): Promise<Answer> {
    let whole = false
    try {
      onPhase(AttemptPhase.HEADERS)
      const { status, headers, isWhole, beginning } = await readAnswer(connection.client, {
        path: url.pathname + url.search,
        request,
        signal,
        maxBytes: responseMaxBytes,
        onHeaders: () => onPhase(AttemptPhase.BODY),
      })
      whole = isWhole
      if (status < 200 || status > 599) throw new ProtocolError('invalid HTTP status')
      const retryAfterMs = parseRetryAfter(headers['retry-after'], now())
      const isText = beginning.length > 0 && headers['content-encoding'] === undefined
      const text = isText ? responseText(beginning) : ''
      return {
        status,
        ...(text !== '' && { text }),
        ...(retryAfterMs !== undefined && { retryAfterMs: BigInt(retryAfterMs) }),
      }
    } finally {
      if (whole) connections.give(connection)
      else connections.drop(connection)
    }
  }

  return {
    async send(request, signal) {
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
  /** Beginning of the body, on one line. Absent for an accepted request and an answer without text. */
  text?: string
}

type ExchangeRest = [url: URL, request: ReadyRequest, signal: AbortSignal, onPhase: (phase: AttemptPhase) => void]

/** Returns the first characters of a response on one line, without control and format characters. */
function responseText(beginning: Buffer[]): string {
  const line = new TextDecoder()
    .decode(Buffer.concat(beginning))
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  return [...line].slice(0, contractLimits.responseTextMaxLength).join('').trimEnd()
}
