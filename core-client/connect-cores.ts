import { lookup as systemLookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { LineLogger } from '../platform/observability/logger.ts'
import type { TlsFiles } from '../platform/tls/tls-files.ts'
import { type CoreNode, type CorePool, createCorePool } from './core-pool.ts'
import { type CoreTransport, createCoreTransport } from './core-transport.ts'

/** Running calls may finish within this time on a core that DNS no longer returns. */
const DRAIN_TIMEOUT_MS = 30_000

interface Connected {
  core: CoreNode & { transport: CoreTransport }
  removed: AbortController
}

/** Connects to the cores of `CORE_URLS`. Follows the addresses of DNS names until `stop`. */
export function connectCores(options: CoreLookups & { tls?: TlsFiles }) {
  const stopped = new AbortController()
  const cores = createCorePool({})
  const connected = new Map<string, Connected>()

  function connect(url: string) {
    const removed = new AbortController()
    const transport = createCoreTransport(url, options.tls)
    const core = { url, transport, request: transport.request, isWatched: true }
    connected.set(url, { core, removed })
    void watchCore(core, cores, AbortSignal.any([removed.signal, stopped.signal]))
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
    ...options,
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

interface CoreLookups {
  urls: readonly string[]
  lookUp?: (hostname: string) => Promise<string[]>
  lookUpEveryMs?: number
  logger?: LineLogger
}

const lookUpByName = async (hostname: string) =>
  (await systemLookup(hostname, { all: true })).map(({ address }) => address)

/**
 * Resolves `CORE_URLS` for `onUrls`. `dns://core:8090` becomes one `http://ADDRESS:8090` per address,
 * looked up again every `lookUpEveryMs` ± 25 % until the signal aborts. A failed lookup keeps the known
 * addresses, so that a DNS outage removes no core.
 */
export async function followCoreUrls(options: CoreLookups & { onUrls: (urls: string[]) => void; signal: AbortSignal }) {
  const { urls, lookUp = lookUpByName, lookUpEveryMs: everyMs = 2_000, onUrls, signal, logger } = options
  const unresolved = new Set<string>()
  const found = new Map<string, string[]>()
  const hasNames = urls.some(isName)

  /** Logs once when a name does not resolve, and once when it does again. */
  function noteLookup(hostname: string, isResolved: boolean) {
    if (isResolved !== unresolved.has(hostname)) return
    if (!isResolved) {
      unresolved.add(hostname)
      logger?.warn(
        { hostname },
        `CORE_URLS: the name ${hostname} does not resolve; trying again every ${everyMs / 1000} s`,
      )
    } else {
      unresolved.delete(hostname)
      logger?.info({ hostname }, 'the name of CORE_URLS resolves again')
    }
  }

  for (;;) {
    await Promise.all(
      urls.filter(isName).map(async (url) => {
        const { hostname, port } = new URL(url)
        const addresses = await lookUp(hostname).catch(() => [])
        noteLookup(hostname, addresses.length > 0)
        const nodes = addresses.map((address) => urlOf(address, port))
        if (nodes.length > 0) found.set(url, nodes)
      }),
    )
    if (signal.aborted) return
    onUrls([...new Set(urls.flatMap((url) => (isName(url) ? (found.get(url) ?? []) : [url])))])
    if (!hasNames) return
    await delay(everyMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {})
  }
}

const isName = (url: string) => url.startsWith('dns:')

const urlOf = (address: string, port: string) => `http://${isIPv6(address) ? `[${address}]` : address}:${port}`

const PROBE_EVERY_MS = 250
/** Milliseconds between two probes of a core that does not answer, or of any core while nobody uses the pool. */
const PROBE_MAX_EVERY_MS = 1_000
const SLICE_MS = 50
/** A core counts as silent after this number of 50 ms waits without an answer. */
const SILENT_SLICES = 10
/**
 * A silent core is cut only if another answered within this time. Otherwise the cores are slow under load,
 * and a cut would not help.
 */
const OTHER_ALIVE_WITHIN_MS = 350
/** A core that is silent for this time is cut even if no other core answers. */
const SOLE_SILENT_MS = 15_000

/**
 * Probes a core until the signal aborts, less often while it does not answer or nobody uses the pool. The
 * pool skips a core whose answer closes the connection: it is starting or stopping. A core that is silent for
 * 500 ms while another answers is cut, so that its calls fail over. If no other core answers, it is cut after
 * 15 s.
 */
async function watchCore(core: Connected['core'], cores: CorePool, signal: AbortSignal) {
  let pauseMs = PROBE_EVERY_MS
  let lastAnswerAt = performance.now()
  for (;;) {
    await delay(pauseMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    const isAlive = pauseMs === PROBE_EVERY_MS
    if (isAlive && !cores.isInUse() && performance.now() - lastAnswerAt < PROBE_MAX_EVERY_MS) continue
    const outcome = await probe(core)
    if (signal.aborted) return
    pauseMs = outcome === 'alive' ? PROBE_EVERY_MS : Math.min(PROBE_MAX_EVERY_MS, pauseMs * 2)
    if (outcome !== 'silent') lastAnswerAt = performance.now()
    if (outcome === 'alive') cores.markAlive(core)
    else if (outcome === 'dead' || outcome === 'unready') cores.markFailed(core)
    else if (
      cores.hasOtherAlive(core, Date.now() - OTHER_ALIVE_WITHIN_MS) ||
      performance.now() - lastAnswerAt >= SOLE_SILENT_MS
    ) {
      cores.markFailed(core)
      core.transport.cut()
    }
  }
}

type Outcome = 'alive' | 'unready' | 'dead' | 'silent'

/** Waits in short slices. With one long timer, a pause of this process would look like a silent core. */
async function probe({ transport }: Connected['core']): Promise<Outcome> {
  const timeout = new AbortController()
  const answer = transport.probe(timeout.signal).then(
    (isRunning): Outcome => (isRunning ? 'alive' : 'unready'),
    (): Outcome => 'dead',
  )
  try {
    for (let slice = 0; slice < SILENT_SLICES; slice++) {
      const outcome = await Promise.race([answer, delay(SLICE_MS, undefined, { signal: timeout.signal })])
      if (outcome !== undefined) return outcome
    }
    return 'silent'
  } finally {
    timeout.abort()
  }
}
