import { Resolver as DnsResolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { AddressCheck } from './addresses.ts'

const queryTimeoutMs = 1_500
const tries = 2
const hostsFreshMs = 5_000
const absent = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

export interface ResolvedAddress {
  address: string
  family: 4 | 6
}

/** Returns every address of a name. Errors: `NameError`. */
export type Lookup = (hostname: string, signal?: AbortSignal) => Promise<ResolvedAddress[]>

export class NameError extends Error {
  override readonly name = 'NameError'
  readonly reason: 'not_found' | 'failed'
  constructor(reason: 'not_found' | 'failed') {
    super(reason === 'not_found' ? 'the name has no address' : 'the name service failed')
    this.reason = reason
  }
}

/**
 * Looks names up in the hosts file, then at the DNS servers of the machine. Does not use `getaddrinfo`: Node runs
 * only a few of its calls at once, so hanging servers would block other destinations. Does not use search domains.
 */
export function createNameService(
  options: {
    hostsFile?: string
    now?: () => number
    newResolver?: () => Pick<DnsResolver, 'resolve4' | 'resolve6'>
  } = {},
): Lookup {
  const { hostsFile = '/etc/hosts', now = Date.now } = options
  const { newResolver = () => new DnsResolver({ timeout: queryTimeoutMs, tries }) } = options
  let servers: ReturnType<typeof newResolver> | undefined
  let hosts: { at: number; addresses: Promise<Map<string, ResolvedAddress[]>> } | undefined

  function knownHosts() {
    if (hosts === undefined || now() - hosts.at > hostsFreshMs) {
      hosts = { at: now(), addresses: readFile(hostsFile, 'utf8').then(parseHosts, () => new Map()) }
      // A new resolver reads the machine's DNS settings again.
      servers = newResolver()
    }
    return hosts.addresses
  }

  return async (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, '')
    const known = (await knownHosts()).get(name) ?? (isLocalhost(name) ? loopback : undefined)
    if (known) return known
    const resolver = servers!
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length > 0) return addresses.map((address) => ({ address, family: isIP(address) as 4 | 6 }))
    const failed = answers.some((answer) => answer.status === 'rejected' && !absent.has(answer.reason.code))
    throw new NameError(failed ? 'failed' : 'not_found')
  }
}

const loopback: ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/** Returns true for `localhost` and names below it (RFC 6761, section 6.3). */
function isLocalhost(name: string) {
  return name === 'localhost' || name.endsWith('.localhost')
}

function parseHosts(text: string) {
  const hosts = new Map<string, ResolvedAddress[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    const family = isIP(address)
    if (family === 0) continue
    for (const name of names) hosts.set(name, [...(hosts.get(name) ?? []), { address, family: family as 4 | 6 }])
  }
  return hosts
}

/** An address of the destination is not allowed. The message does not contain the address. */
export class DestinationBlockedError extends Error {
  override readonly name = 'DestinationBlockedError'
  constructor() {
    super('an address of the destination is not allowed')
  }
}

export type Resolver = ReturnType<typeof createResolver>

/** Resolves destinations to allowed addresses. Does not cache. */
export function createResolver(options: { isAllowed: AddressCheck; lookup?: Lookup }) {
  const { isAllowed, lookup = createNameService() } = options
  return {
    /**
     * Returns the addresses of a URL's `hostname`, which may be an address itself. Errors:
     * `DestinationBlockedError` if one is not allowed; `NameError`; the reason of the signal.
     */
    async resolve(hostname: string, signal?: AbortSignal): Promise<ResolvedAddress[]> {
      signal?.throwIfAborted()
      const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
      const family = isIP(host)
      // An unusual notation of an address: host names contain neither colon nor percent sign.
      if (family === 0 && (host === '' || /[:%]/.test(host))) throw new DestinationBlockedError()
      const addresses =
        family === 0 ? await unlessAborted(lookup(host, signal), signal) : [{ address: host, family: family as 4 | 6 }]
      if (addresses.length === 0) throw new NameError('not_found')
      if (!addresses.every(({ address }) => isAllowed(address))) throw new DestinationBlockedError()
      return addresses
    },
  }
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
