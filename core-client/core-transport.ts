import { constants } from 'node:http2'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node'
import type { TlsFiles, TlsMaterial } from '../platform/tls/tls-files.ts'

const MESSAGE_MAX_BYTES = 16 * 1024 * 1024
const WINDOW_BYTES = 4 * 1024 * 1024

/** A transport to one core, over one connection. */
export interface CoreTransport extends Transport {
  /** Resolves when the core answers on this connection, which is opened where there is none. Errors: rejects when it does not. */
  probe(signal: AbortSignal): Promise<void>
  /** Breaks the connection off, and with it all calls that are under way: they fail as `unavailable`. */
  cut(): void
}

/**
 * A transport to one core: the Connect protocol over one HTTP/2 connection. With certificates that change, new calls go
 * over a new connection; what runs on the one before ends there.
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
    // No pings of its own: those go on after a connection that was cut, and throw. `probe` finds a dead core.
    {},
    { settings: { initialWindowSize: WINDOW_BYTES }, ...material },
  )
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: '2',
    useBinaryFormat: true,
    // Compression between the two costs more than it saves.
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
