import { constants } from 'node:http2'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node'
import type { TlsFiles, TlsMaterial } from '../platform/tls/tls-files.ts'

const MESSAGE_MAX_BYTES = 16 * 1024 * 1024
const WINDOW_BYTES = 4 * 1024 * 1024

/** A transport to one core, over one connection. */
export interface CoreTransport extends Transport {
  /**
   * Resolves when the core answers on this connection, and opens it if needed. Rejects on failure.
   */
  probe(signal: AbortSignal): Promise<void>
  /** Closes the connection. Its running calls fail with `unavailable`. */
  cut(): void
}

/**
 * Creates a transport that speaks the Connect protocol over one HTTP/2 connection. After
 * certificates change, new calls use a new connection, and running calls finish on the old one.
 */
export function createCoreTransport(baseUrl: string, tls?: TlsFiles): CoreTransport {
  let material = tls?.current()
  let transport = connectTransport(baseUrl, material)

  function latest() {
    const found = tls?.current()
    if (found !== material) {
      material = found
      transport = connectTransport(baseUrl, material)
    }
    return transport
  }

  return {
    unary: (...call) => latest().unary(...call),
    stream: (...call) => latest().stream(...call),
    probe: (signal) => latest().probe(signal),
    cut: () => transport.cut(),
  }
}

function connectTransport(baseUrl: string, material: TlsMaterial = {}): CoreTransport {
  const connection = new Http2SessionManager(
    baseUrl,
    // No pings: they continue after `cut` and throw. `probe` detects a dead core.
    {},
    { settings: { initialWindowSize: WINDOW_BYTES }, ...material },
  )
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: '2',
    useBinaryFormat: true,
    // Compression costs more CPU time than it saves.
    acceptCompression: [],
    readMaxBytes: MESSAGE_MAX_BYTES,
    writeMaxBytes: MESSAGE_MAX_BYTES,
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
