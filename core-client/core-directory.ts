import { lookup as systemLookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export type CoreLookup = (hostname: string) => Promise<string[]>

const lookUpByName: CoreLookup = async (hostname) =>
  (await systemLookup(hostname, { all: true })).map(({ address }) => address)

/**
 * The addresses behind the entries of `CORE_URLS`: those of http and https as they are, and for `dns://core:8090` one
 * `http://ADDRESS:8090` for each address of the name, looked up again every `everyMs`, give or take a quarter. A look-up
 * that fails changes nothing, so that an outage of the name service takes no core away.
 */
export async function followCoreUrls(options: {
  urls: readonly string[]
  lookUp?: CoreLookup
  everyMs?: number
  random?: () => number
  onUrls: (urls: string[]) => void
  signal: AbortSignal
}): Promise<void> {
  const { urls, lookUp = lookUpByName, everyMs = 2_000, random = Math.random, onUrls, signal } = options
  const found = new Map<string, string[]>()
  const changes = urls.some(isName)

  for (;;) {
    await Promise.all(
      urls.filter(isName).map(async (url) => {
        const { hostname, port } = new URL(url)
        const addresses = await lookUp(hostname).catch(() => [])
        if (addresses.length > 0)
          found.set(
            url,
            addresses.map((address) => urlOf(address, port)),
          )
      }),
    )
    if (signal.aborted) return
    onUrls([...new Set(urls.flatMap((url) => (isName(url) ? (found.get(url) ?? []) : [url])))])
    if (!changes) return
    await delay(everyMs * (0.75 + random() / 2), undefined, { signal }).catch(() => {})
  }
}

const isName = (url: string) => url.startsWith('dns:')

const urlOf = (address: string, port: string) => `http://${isIPv6(address) ? `[${address}]` : address}:${port}`
