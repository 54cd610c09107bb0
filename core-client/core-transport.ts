import type { Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'

const PING_INTERVAL_MS = 10_000
const PING_TIMEOUT_MS = 5_000
const MESSAGE_MAX_BYTES = 16 * 1024 * 1024
const WINDOW_BYTES = 4 * 1024 * 1024

/** A transport to one core: the Connect protocol over one HTTP/2 connection. */
export function createCoreTransport(baseUrl: string): Transport {
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
    nodeOptions: { settings: { initialWindowSize: WINDOW_BYTES } },
  })
}
