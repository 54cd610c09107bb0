import { setTimeout as delay } from 'node:timers/promises'
import type { TlsFiles } from '../platform/tls/tls-files.ts'
import { type CoreLookup, followCoreUrls } from './core-directory.ts'
import { watchCore } from './core-health.ts'
import { type CoreNode, type CorePool, createCorePool } from './core-pool.ts'
import { type CoreTransport, createCoreTransport } from './core-transport.ts'

/** How long calls may finish on a core that was removed from the directory. */
const DRAIN_TIMEOUT_MS = 30_000
const DRAIN_POLL_MS = 250

export interface ConnectedCores {
  cores: CorePool
  stop(): void
}

interface Connected {
  core: CoreNode & { transport: CoreTransport }
  removed: AbortController
}

/** Connects to the cores of `CORE_URLS` and follows changes until `stop` is called. */
export function connectCores(options: {
  urls: readonly string[]
  /** Certificates for cores with https. */
  tls?: TlsFiles | undefined
  lookUp?: CoreLookup
  lookUpEveryMs?: number
  random?: () => number
}): ConnectedCores {
  const { random = Math.random } = options
  const stopped = new AbortController()
  const cores = createCorePool({ random })
  const connected = new Map<string, Connected>()

  function connect(url: string): void {
    const removed = new AbortController()
    const core = { url, transport: createCoreTransport(url, options.tls), isWatched: true }
    connected.set(url, { core, removed })
    void watchCore({ core, cores, random, signal: AbortSignal.any([removed.signal, stopped.signal]) })
  }

  async function drain(url: string, { core, removed }: Connected): Promise<void> {
    connected.delete(url)
    removed.abort()
    const deadline = Date.now() + DRAIN_TIMEOUT_MS
    do await delay(DRAIN_POLL_MS, undefined, { ref: false })
    while (cores.inFlight(core) > 0 && Date.now() < deadline)
    core.transport.cut()
  }

  void followCoreUrls({
    urls: options.urls,
    lookUp: options.lookUp,
    everyMs: options.lookUpEveryMs,
    random,
    signal: stopped.signal,
    onUrls(urls) {
      for (const url of urls) if (!connected.has(url)) connect(url)
      const leaving = [...connected].filter(([url]) => !urls.includes(url))
      cores.replace(urls.map((url) => connected.get(url)!.core))
      for (const [url, each] of leaving) void drain(url, each)
    },
  })

  return { cores, stop: () => stopped.abort() }
}
