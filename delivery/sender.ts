import { AttemptPhase, type ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { parseDestinationUrl } from '../platform/addresses/destination-url.ts'
import { DestinationBlockedError, type ResolvedAddress, type Resolver } from '../platform/addresses/resolve.ts'
import { type Connection, createConnections } from './connections.ts'
import { type Failure, failureOf, isConnectionLost, ProtocolError } from './failures.ts'
import { type Dial, openSocket } from './open-socket.ts'
import { readAnswer } from './read-answer.ts'
import { parseRetryAfter } from './retry-after.ts'

/** What an attempt came to, as the core wants to hear it. */
export type Outcome =
  | { case: 'response'; value: { status: number; retryAfterMs?: bigint } }
  | { case: 'failure'; value: Failure }
  | { case: 'released'; value: Record<string, never> }

/** A request as the core has prepared it. */
export type ReadyRequest = Pick<ClaimedDelivery, 'url' | 'headers' | 'body' | 'deadlineMs'>

export interface Sender {
  /**
   * One attempt. Never rejects. Aborting the signal breaks it off: the outcome is `released` when nothing of the request was
   * sent, and a failure otherwise.
   */
  send(request: ReadyRequest, signal: AbortSignal): Promise<Outcome>
  /** Connections that wait for work. */
  idleConnections(): number
  close(): Promise<void>
}

export interface SenderOptions {
  resolver: Resolver
  responseMaxBytes: number
  /** Connections that are kept for later requests. */
  maxIdle: number
  now?: () => number
  dial?: Dial | undefined
  ca?: string | undefined
}

/**
 * Sends prepared requests (contract, section 5). Each attempt resolves its destination anew, judges every address and goes to a
 * judged one, over a connection that is kept only for such an address. Redirects are not followed, proxies not used. One deadline
 * covers it all. Of an answer at most `responseMaxBytes` are read, then the connection is closed and the status counts.
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
   * Undefined when the server had let go of the kept connection before it said a word: it does so at any time, and a request
   * that meets it on its way has failed through nobody's fault.
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
      const { status, headers, isWhole } = await readAnswer(connection.client, {
        path: url.pathname + url.search,
        request,
        signal,
        maxBytes: responseMaxBytes,
        onHeaders: () => onPhase(AttemptPhase.BODY),
      })
      whole = isWhole
      if (status < 200 || status > 599) throw new ProtocolError('no status of HTTP')
      const retryAfterMs = parseRetryAfter(headers['retry-after'], now())
      return { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs: BigInt(retryAfterMs) }) }
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
        end.abort(new Error('the deadline has passed'))
      }, request.deadlineMs)
      const release = () => end.abort(new Error('the worker stops'))
      if (signal.aborted) release()
      else signal.addEventListener('abort', release)
      let phase = AttemptPhase.RESOLVE
      try {
        const answer = await attempt(request, end.signal, (next) => {
          phase = next
        })
        return { case: 'response', value: answer }
      } catch (error) {
        const brokenOff = end.signal.aborted && !timedOut
        if (brokenOff && phase < AttemptPhase.HEADERS) return { case: 'released', value: {} }
        return { case: 'failure', value: failureOf(error, phase, timedOut) }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', release)
      }
    },
    idleConnections: connections.idle,
    close: connections.close,
  }
}

type Answer = { status: number; retryAfterMs?: bigint }
type ExchangeRest = [url: URL, request: ReadyRequest, signal: AbortSignal, onPhase: (phase: AttemptPhase) => void]
