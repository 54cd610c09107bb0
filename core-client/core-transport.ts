import type { Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import type { TlsFiles, TlsMaterial } from '../tls/tls-files.ts'

const PING_INTERVAL_MS = 10_000
const PING_TIMEOUT_MS = 5_000
const MESSAGE_MAX_BYTES = 16 * 1024 * 1024
const WINDOW_BYTES = 4 * 1024 * 1024

/**
 * A transport to one core: the Connect protocol over one HTTP/2 connection. With certificates that change, new calls go
 * over a new connection; what runs on the one before ends there.
 */
export function createCoreTransport(baseUrl: string, tls?: TlsFiles): Transport {
  if (!tls) return connectTransport(baseUrl, {})
  let material = tls.current()
  let transport = connectTransport(baseUrl, material)

  function latest() {
    const found = tls!.current()
    if (found !== material) {
      material = found
      transport = connectTransport(baseUrl, material)
    }
    return transport
  }

  return {
    unary: (...call) => latest().unary(...call),
    stream: (...call) => latest().stream(...call),
  }
}

function connectTransport(baseUrl: string, material: TlsMaterial): Transport {
  return createConnectTransport({
    baseUrl,
    httpVersion: '2',
    useBinaryFormat: true,
    // Compression between the two costs more than it saves.
    acceptCompression: [],
    // Pings find a dead core behind a live connection.
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
    pingIdleConnection: true,
    readMaxBytes: MESSAGE_MAX_BYTES,
    writeMaxBytes: MESSAGE_MAX_BYTES,
    nodeOptions: { settings: { initialWindowSize: WINDOW_BYTES }, ...material },
  })
}
