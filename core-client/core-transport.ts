import { constants } from 'node:http2'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node'
import { messageMaxBytes } from '../platform/message-limit.ts'
import type { TlsFiles, TlsMaterial } from '../platform/tls/tls-files.ts'
import { type CoreRequest, createHttpClient } from './http-client.ts'

export type CoreTransport = ReturnType<typeof createCoreTransport>

/**
 * A Connect transport to one core. Unary calls use HTTP/1.1 connections that stay open, and streams share
 * one HTTP/2 connection. After certificates change, running calls finish on the old connections.
 */
export function createCoreTransport(baseUrl: string, tls?: TlsFiles) {
  let material = tls?.current()
  let connected = connectTo(baseUrl, material)

  function latest() {
    const found = tls?.current()
    if (found !== material) {
      connected.close()
      material = found
      connected = connectTo(baseUrl, material)
    }
    return connected
  }

  const transport: Transport = {
    unary: (...call) => latest().unary(...call),
    stream: (...call) => latest().stream(...call),
  }
  return {
    ...transport,
    request: (request: CoreRequest) => latest().request(request),
    /** Asks for health on the open connections. Resolves with false if the core is starting or stopping. */
    probe: (signal: AbortSignal) => latest().probe(signal),
    /** Running calls fail with `unavailable`. */
    cut: () => latest().cut(),
  }
}

function connectTo(baseUrl: string, material: TlsMaterial = {}) {
  const { unary, request, close, ...http } = createHttpClient(baseUrl, material)
  const connection = new Connection(
    baseUrl,
    // No pings, because their timers continue after `cut` and throw. `probe` detects a dead core instead.
    {},
    { settings: { initialWindowSize: 4 * 1024 * 1024 }, ...material },
  )
  const { stream } = createConnectTransport({
    baseUrl,
    httpVersion: '2',
    useBinaryFormat: true,
    // Compression costs more CPU time than it saves.
    acceptCompression: [],
    readMaxBytes: messageMaxBytes,
    writeMaxBytes: messageMaxBytes,
    sessionManager: connection,
  })

  async function probeStreams(signal: AbortSignal) {
    if (connection.state() !== 'open') return
    const probe = await connection.request('GET', '/livez', {}, {})
    signal.addEventListener('abort', () => probe.close(constants.NGHTTP2_CANCEL), { once: true })
    await new Promise<void>((resolve, reject) => {
      probe.once('end', resolve).once('error', reject).once('close', reject)
      probe.resume()
    })
  }

  return {
    unary,
    request,
    stream,
    close,
    async probe(signal: AbortSignal) {
      const [isRunning] = await Promise.all([http.probe(signal), probeStreams(signal)])
      return isRunning
    },
    cut() {
      http.cut()
      connection.abort(new ConnectError('core does not answer', Code.Unavailable))
    },
  }
}

/**
 * Adds a permanent error listener to each session: a destroyed one may emit an error after the base class
 * has removed its listener, which would end the process.
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
