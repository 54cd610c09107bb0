import { lookup as systemLookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { LineLogger } from '../platform/observability/logger.ts'

export type CoreLookup = (hostname: string) => Promise<string[]>

const lookUpByName: CoreLookup = async (hostname) =>
  (await systemLookup(hostname, { all: true })).map(({ address }) => address)

/**
 * Resolves `CORE_URLS` for `onUrls`. `dns://core:8090` becomes one `http://ADDRESS:8090` per address,
 * looked up again every `everyMs` ± 25 % until the signal aborts. A failed lookup keeps the known
 * addresses, so that a DNS outage removes no core.
 */
export async function followCoreUrls(options: {
  urls: readonly string[]
  lookUp?: CoreLookup
  everyMs?: number
  onUrls: (urls: string[]) => void
  signal: AbortSignal
  logger?: LineLogger | undefined
}) {
  const { urls, lookUp = lookUpByName, everyMs = 2_000, onUrls, signal, logger } = options
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
