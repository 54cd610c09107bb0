import type { Socket } from 'node:net'
import { AttemptPhase, type ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { parseDestinationUrl } from '../contract/destination-url.ts'
import { contractLimits } from '../contract/limits.ts'
import type { ResolvedAddress } from '../platform/addresses/name-service.ts'
import { DestinationBlockedError, type Resolver } from '../platform/addresses/resolve.ts'
import { parseRetryAfter } from '../platform/http/retry-after.ts'
import { classifyFailure, type Failure, isConnectionLost } from './failures.ts'
import { type Dial, openSocket } from './open-socket.ts'
import { readAnswer } from './read-answer.ts'

export type Outcome =
  | { case: 'response'; value: Answer }
  | { case: 'failure'; value: Failure }
  | { case: 'released'; value: Record<string, never> }

export type ReadyRequest = Pick<ClaimedDelivery, 'url' | 'headers' | 'body' | 'deadlineMs'>

export type Sender = ReturnType<typeof createSender>

export interface SenderOptions {
  resolver: Resolver
  /** Maximum number of bytes that are read of a response. */
  responseMaxBytes?: number
  maxIdle?: number
  now?: () => number
  dial?: Dial | undefined
  /** Certificate authorities (PEM) instead of Node's, for tests. */
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

    const exchange = { url, request, signal, onPhase }
    const kept = connections.take(url.origin, addresses)
    const answered = kept && (await exchangeUnlessStale(kept, exchange))
    return answered ?? exchangeOver(await openSocket({ ...exchange, addresses, dial, ca }), exchange)
  }

  /** Returns undefined if the server closed the idle connection first. Then a new one is used. */
  async function exchangeUnlessStale(kept: Socket, exchange: Exchange): Promise<Answer | undefined> {
    const { bytesRead } = kept
    try {
      return await exchangeOver(kept, exchange)
    } catch (error) {
      if (exchange.signal.aborted || kept.bytesRead > bytesRead || !isConnectionLost(error)) throw error
      return undefined
    }
  }

  async function exchangeOver(socket: Socket, { onPhase, ...exchange }: Exchange): Promise<Answer> {
    onPhase(AttemptPhase.HEADERS)
    const onHeaders = () => onPhase(AttemptPhase.BODY)
    const answer = await readAnswer(socket, { ...exchange, maxBytes: responseMaxBytes, onHeaders })
    const { status, headers, beginning, isReusable } = answer
    if (isReusable) connections.give(exchange.url.origin, socket)
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

interface Exchange {
  url: URL
  request: ReadyRequest
  signal: AbortSignal
  onPhase: (phase: AttemptPhase) => void
}

/** Returns the first characters on one line, without control and format characters. */
function responseText(beginning: Buffer[]) {
  const line = new TextDecoder()
    .decode(Buffer.concat(beginning))
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  return [...line].slice(0, contractLimits.responseTextMaxLength).join('').trimEnd()
}

const idleMs = 4_000
/** Each of these events closes an idle connection. Bytes that nobody asked for are no response. */
const endings = ['data', 'timeout', 'close']

/**
 * Keeps up to `maxIdle` connections for later requests to the same origin. Evicts the least recently used.
 */
function createConnections({ maxIdle }: { maxIdle: number }) {
  const idle = new Map<Socket, string>()

  function remove(socket: Socket) {
    idle.delete(socket)
    for (const event of endings) socket.off(event, drop)
    socket.setTimeout(0)
  }

  function drop(this: Socket) {
    remove(this)
    this.destroy()
  }

  return {
    /** Removes and returns a connection to the origin and one of the addresses. */
    take(origin: string, addresses: ResolvedAddress[]) {
      const allowed = new Set(addresses.map(({ address }) => address))
      const found = [...idle].findLast(
        ([{ writable, remoteAddress = '' }, its]) => its === origin && writable && allowed.has(remoteAddress),
      )
      if (found) remove(found[0])
      return found?.[0]
    },
    /** Keeps a connection whose last response is complete. */
    give(origin: string, socket: Socket) {
      idle.set(socket, origin)
      for (const event of endings) socket.on(event, drop)
      socket.setTimeout(idleMs)
      const [oldest] = idle.keys()
      if (idle.size > maxIdle && oldest) drop.call(oldest)
    },
    idle: () => idle.size,
    async close() {
      for (const socket of idle.keys()) drop.call(socket)
    },
  }
}
