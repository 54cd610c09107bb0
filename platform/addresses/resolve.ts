import { isIP } from 'node:net'
import type { AddressCheck } from './addresses.ts'
import { createNameService, type Lookup, NameError, type ResolvedAddress } from './name-service.ts'

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
      return addresses.map(({ address }) => ({ address, family: isIP(address) as 4 | 6 }))
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
