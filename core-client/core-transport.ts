import { constants } from 'node:http2'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node'
import { messageMaxBytes } from '../platform/link/frame-queue.ts'
import type { TlsFiles, TlsMaterial } from '../platform/tls/tls-files.ts'
import { withCurrentTls } from './core-tls.ts'
import { type Link, type LinkMetrics, openLink } from './link.ts'

const WINDOW_BYTES = 4 * 1024 * 1024
/** Pause in milliseconds before a broken link is opened again. Calls use HTTP meanwhile. */
const LINK_RETRY_MS = 500
/**
 * Pause in milliseconds before a link is opened again if the core does not have the link service.
 */
const LINK_RETRY_UNKNOWN_MS = 60_000

/** A transport to one core, over one connection. */
export interface CoreTransport extends Transport {
  /**
   * Sends a health request on this connection, which is opened if needed. Resolves when the core
   * answers. Rejects on failure.
   */
  probe(signal: AbortSignal): Promise<void>
  /** Closes the connection. Running calls on it fail with `unavailable`. */
  cut(): void
}

/**
 * Creates a transport that speaks the Connect protocol over one HTTP/2 connection. After
 * certificates change, new calls use a new connection, and running calls finish on the old one. If
 * `metrics` is set, unary calls share one stream, the link (see link.ts).
 */
export function createCoreTransport(baseUrl: string, tls?: TlsFiles, metrics?: LinkMetrics): CoreTransport {
  const latest = withCurrentTls(
    tls,
    (material) => {
      const transport = connectTransport(baseUrl, material)
      const linked = metrics && createLinkedTransport(transport, metrics)
      return { ...transport, ...linked }
    },
    ({ retire }) => retire?.(),
  )
  return {
    unary: (...call) => latest().unary(...call),
    stream: (...call) => latest().stream(...call),
    probe: (signal) => latest().probe(signal),
    cut: () => latest().cut(),
  }
}

/**
 * A session manager that adds a permanent error listener to each session. A destroyed session can
 * emit its error after the base class has removed its listener. An error without a listener would
 * end the process.
 */
class Connection extends Http2SessionManager {
  readonly #listened = new WeakSet<object>()

  override async request(...call: Parameters<Http2SessionManager['request']>) {
    const stream = await super.request(...call)
    const { session } = stream
    if (session && !this.#listened.has(session)) {
      this.#listened.add(session)
      session.on('error', () => {})
    }
    return stream
  }
}

function connectTransport(baseUrl: string, material: TlsMaterial = {}): CoreTransport {
  const connection = new Connection(
    baseUrl,
    // HTTP/2 pings are not used, because their timers continue after `cut` and throw. `probe`
    // detects a dead core instead.
    {},
    { settings: { initialWindowSize: WINDOW_BYTES }, ...material },
  )
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: '2',
    useBinaryFormat: true,
    // Responses are not compressed, because compression costs more CPU time than it saves.
    acceptCompression: [],
    readMaxBytes: messageMaxBytes,
    writeMaxBytes: messageMaxBytes,
    sessionManager: connection,
  })
  return {
    ...transport,
    async probe(signal) {
      const stream = await connection.request('GET', '/livez', {}, {})
      signal.addEventListener('abort', () => stream.close(constants.NGHTTP2_CANCEL), { once: true })
      await new Promise<void>((resolve, reject) => {
        stream.once('end', resolve).once('error', reject).once('close', reject)
        stream.resume()
      })
    },
    cut: () => connection.abort(new ConnectError('core does not answer', Code.Unavailable)),
  }
}

/** A transport whose unary calls use a link. */
interface LinkedTransport extends Transport {
  /** Ends the link after the answers to the running calls. Later calls use HTTP. */
  retire(): void
}

/**
 * Adds a link to a transport. The first call opens the link. While the link is not open, unary
 * calls use `transport`. Streams always use `transport`.
 */
function createLinkedTransport(transport: Transport, metrics: LinkMetrics): LinkedTransport {
  let link: Link | undefined
  let mayOpen = true
  let isRetired = false

  async function open(authorization: string) {
    mayOpen = false
    link = openLink(transport, authorization, metrics)
    const isUnknown = await link.ended
    link = undefined
    setTimeout(() => (mayOpen = !isRetired), isUnknown ? LINK_RETRY_UNKNOWN_MS : LINK_RETRY_MS).unref()
  }

  return {
    stream: (...call) => transport.stream(...call),

    unary(method, signal, timeoutMs, header, input, values) {
      if (link?.isOpen()) return link.unary(method, signal, timeoutMs, header, input, values)
      const authorization = mayOpen && new Headers(header).get('authorization')
      if (authorization) void open(authorization)
      return transport.unary(method, signal, timeoutMs, header, input, values)
    },

    retire() {
      isRetired = true
      mayOpen = false
      link?.drain()
    },
  }
}
