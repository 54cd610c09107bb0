import { setTimeout as delay } from 'node:timers/promises'
import type { LineLogger } from '../platform/observability/logger.ts'
import type { TlsFiles } from '../platform/tls/tls-files.ts'
import { type CoreLookup, followCoreUrls } from './core-directory.ts'
import { watchCore } from './core-health.ts'
import { type CoreNode, createCorePool } from './core-pool.ts'
import { type CoreTransport, createCoreTransport } from './core-transport.ts'

/** Running calls may finish within this time on a core that DNS no longer returns. */
const DRAIN_TIMEOUT_MS = 30_000

interface Connected {
  core: CoreNode & { transport: CoreTransport }
  removed: AbortController
}

/** Connects to the cores of `CORE_URLS`. Follows the addresses of DNS names until `stop`. */
export function connectCores(options: {
  urls: readonly string[]
  tls?: TlsFiles
  lookUp?: CoreLookup
  lookUpEveryMs?: number
  logger?: LineLogger
}) {
  const stopped = new AbortController()
  const cores = createCorePool({})
  const connected = new Map<string, Connected>()

  function connect(url: string) {
    const removed = new AbortController()
    const transport = createCoreTransport(url, options.tls)
    const core = { url, transport, request: transport.request, isWatched: true }
    connected.set(url, { core, removed })
    void watchCore({ core, cores, signal: AbortSignal.any([removed.signal, stopped.signal]) })
  }

  async function drain(url: string, { core, removed }: Connected) {
    connected.delete(url)
    removed.abort()
    const deadline = Date.now() + DRAIN_TIMEOUT_MS
    do await delay(250, undefined, { ref: false })
    while (cores.inFlight(core) > 0 && Date.now() < deadline)
    core.transport.cut()
  }

  void followCoreUrls({
    urls: options.urls,
    lookUp: options.lookUp,
    everyMs: options.lookUpEveryMs,
    logger: options.logger,
    signal: stopped.signal,
    onUrls(urls) {
      for (const url of urls) if (!connected.has(url)) connect(url)
      const leaving = [...connected].filter(([url]) => !urls.includes(url))
      cores.replace(urls.map((url) => connected.get(url)!.core))
      for (const [url, each] of leaving) void drain(url, each)
    },
  })

  return {
    cores,
    /** Closes each connection after its last call, at the latest after 30 s. */
    stop() {
      stopped.abort()
      for (const [url, each] of connected) void drain(url, each)
    },
  }
}
