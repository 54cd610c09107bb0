import http, { type IncomingMessage } from 'node:http'
import net, { type Socket } from 'node:net'
import tls from 'node:tls'
import { AttemptPhase, type ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { parseDestinationUrl } from '../contract/destination-url.ts'
import { contractLimits } from '../contract/limits.ts'
import { DestinationBlockedError, type ResolvedAddress, type Resolver } from '../platform/addresses/resolve.ts'
import { parseRetryAfter } from '../platform/http/retry-after.ts'
import { classifyFailure, type Failure, failed, isConnectionLost } from './failures.ts'

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
  dial?: Dial
  /** Certificate authorities (PEM) instead of Node's, for tests. */
  ca?: string
}

/**
 * Sends prepared requests (contract, section 5). Each attempt resolves its destination again and checks
 * every address; an idle connection is reused only for one of them. Redirects are not followed, and proxies
 * not used. One deadline covers the attempt, and `responseMaxBytes` all that the destination sends.
 */
export function createSender(options: SenderOptions) {
  const { resolver, responseMaxBytes = 65_536, maxIdle = 256, now = Date.now, dial, ca } = options
  const connections = createConnections(maxIdle)

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
function createConnections(maxIdle: number) {
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

type Dial = (options: net.TcpNetConnectOpts) => net.Socket

/** The next address is tried in parallel after this time (Happy Eyeballs, RFC 8305). */
const headStartMs = 300

interface OpenSocketOptions extends Omit<Exchange, 'request'>, Pick<SenderOptions, 'dial' | 'ca'> {
  /** Checked addresses. No others are connected to. */
  addresses: ResolvedAddress[]
}

/**
 * Connects to the host of a URL, with TLS for https, over one of the given addresses only: no name is
 * resolved again, and no proxy is used. TLS verifies the host name. Errors: `DestinationBlockedError`, the
 * reason of the signal, and Node's network errors.
 */
async function openSocket(options: OpenSocketOptions): Promise<net.Socket> {
  const { url, signal, onPhase } = options
  onPhase(AttemptPhase.CONNECT)
  const socket = (options.dial ?? net.connect)(tcpOptions(options))
  try {
    await waitFor(socket, 'connect', signal)
    if (!options.addresses.some(({ address }) => isSame(address, socket.remoteAddress))) {
      throw new DestinationBlockedError()
    }
    if (url.protocol === 'http:') return socket
    onPhase(AttemptPhase.TLS)
    const secured = tls.connect({ socket, ...tlsOptions(url, options.ca) })
    await waitFor(secured, 'secureConnect', signal)
    return secured
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function tcpOptions({ url, addresses }: OpenSocketOptions): net.TcpNetConnectOpts {
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  const [first, ...others] = addresses
  if (first === undefined) throw new DestinationBlockedError()
  const common = { port, noDelay: true, keepAlive: true }
  if (others.length === 0) return { ...common, host: first.address, family: first.family }
  return {
    ...common,
    host: bareHost(url),
    lookup: (_host, _options, answer) => answer(null, addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: headStartMs,
  }
}

function tlsOptions(url: URL, ca: string | undefined): tls.ConnectionOptions {
  const host = bareHost(url)
  return {
    host,
    // `servername` must not be an address (RFC 6066, section 3). Without it, TLS verifies `host`.
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    // Otherwise NODE_TLS_REJECT_UNAUTHORIZED could disable the verification.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  }
}

/** Returns the host without the brackets of an IPv6 address or the trailing dot of a name. */
function bareHost({ hostname }: URL) {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Rejects if the socket fails or closes, or the signal aborts. */
function waitFor(socket: net.Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason)
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error)
    const close = () => fail(failed('ECONNRESET', 'connection closed'))
    // This listener is never removed, because an unhandled socket error would end the process.
    socket.on('error', fail)
    socket.once('close', close)
    socket.once(event, () => {
      socket.off('close', close)
      signal.removeEventListener('abort', abort)
      resolve()
    })
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
    socket.once('close', () => signal.removeEventListener('abort', abort))
  })
}

function isSame(address: string, remote: string | undefined) {
  if (remote === undefined) return false
  const same = new net.BlockList()
  same.addAddress(address, net.isIPv6(address) ? 'ipv6' : 'ipv4')
  return net.isIP(remote) !== 0 && same.check(remote, net.isIPv6(remote) ? 'ipv6' : 'ipv4')
}

interface WholeAnswer {
  status: number
  headers: Record<string, string[] | undefined>
  /** Beginning of the body of an answer that is not 2xx, in pieces. */
  beginning: Buffer[]
  /** Whether the connection can carry another request. */
  isReusable: boolean
}

/** The worker sets these headers from URL and body, and drops the values of the core. */
const ownHeaders = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'expect', 'upgrade'])

/** Bytes of an answer that are kept. 300 characters have at most 1,200. */
const keptBytes = 1_200
/** Maximum size of the names and values in a head. */
const headMaxBytes = 16 * 1024

/**
 * Sends one POST, and resolves with the complete answer. Drops interim answers (1xx), asked for or not.
 * Counts every byte. Errors: `TOO_LARGE` above `maxBytes`; `INVALID_RESPONSE` and the parser's
 * errors if it is not HTTP; the reason of the signal; the socket's errors.
 */
function readAnswer(socket: Socket, options: Omit<Exchange, 'onPhase'> & { maxBytes: number; onHeaders: () => void }) {
  const { url, request, signal, maxBytes, onHeaders } = options
  return new Promise<WholeAnswer>((resolve, reject) => {
    if (socket.destroyed) return reject(failed('ECONNRESET', 'connection lost'))
    let answer: IncomingMessage | undefined
    let received = 0
    const beginning: Buffer[] = []

    const count = (chunk: Buffer) => {
      received += chunk.length
      if (received > maxBytes) fail(failed('TOO_LARGE', 'response too large'))
    }
    // Counts before the parser, whose listener is added later.
    socket.on('data', count)
    const abort = () => fail(signal.reason)
    const close = () => fail(failed('ECONNRESET', 'connection lost'))
    signal.addEventListener('abort', abort)
    socket.on('close', close)

    const sending = http.request({
      createConnection: () => socket,
      method: 'POST',
      path: url.pathname + url.search,
      headers: headersOf(url, request),
      maxHeaderSize: maxBytes,
      insecureHTTPParser: false,
    })
    // Without an agent, Node would close the connection after the answer.
    sending.shouldKeepAlive = true

    const stop = () => {
      signal.removeEventListener('abort', abort)
      socket.off('data', count).off('close', close)
    }
    const fail = (error: Error) => {
      // Bytes after a complete answer are a fault of the connection only.
      if (answer?.complete && !signal.aborted) return
      stop()
      reject(error)
      socket.destroy()
    }

    sending.on('error', fail)
    sending.on('upgrade', () => fail(failed('INVALID_RESPONSE', 'protocol switched without a request')))
    sending.on('response', (response) => {
      answer = response
      onHeaders()
      const { statusCode: status = 0, headersDistinct: headers, rawHeaders } = response
      if (status < 200 || status > 599) return fail(failed('INVALID_RESPONSE', 'invalid HTTP status'))
      if (rawHeaders.reduce((size, { length }) => size + length, 0) > headMaxBytes)
        return fail(failed('INVALID_RESPONSE', 'head too large'))
      let size = 0
      response.on('data', (chunk: Buffer) => {
        if (status >= 300 && size < keptBytes) beginning.push(chunk)
        size += chunk.length
      })
      response.on('error', fail)
      response.on('end', () => {
        stop()
        resolve({ status, headers, beginning, isReusable: sending.writableFinished && socket.writable })
      })
    })
    sending.end(request.body)
  })
}

/** Alternating names and values: Node adds none to this form. */
function headersOf({ host }: URL, { headers, body }: Pick<ClaimedDelivery, 'headers' | 'body'>) {
  return [
    ...['host', host, 'connection', 'keep-alive', 'content-length', String(body.length)],
    ...Object.entries(headers).flatMap((header) => (ownHeaders.has(header[0].toLowerCase()) ? [] : header)),
  ]
}
