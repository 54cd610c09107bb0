import { isIP } from 'node:net'
import type { AddressJudge } from './addresses.ts'
import { createNameService } from './name-service.ts'

export interface ResolvedAddress {
  address: string
  family: 4 | 6
}

/** Every address of a name. Errors: `NameError`. */
export type Lookup = (hostname: string, signal?: AbortSignal) => Promise<ResolvedAddress[]>

/** An address of the destination is not allowed. It does not say which. */
export class DestinationBlockedError extends Error {
  override readonly name = 'DestinationBlockedError'
  constructor() {
    super('an address of the destination is not allowed')
  }
}

/** A name has no address: it does not exist (`not_found`), or nobody could say (`failed`). */
export class NameError extends Error {
  override readonly name = 'NameError'
  readonly reason: 'not_found' | 'failed'
  constructor(reason: 'not_found' | 'failed') {
    super(reason === 'not_found' ? 'the name has no address' : 'the name service failed')
    this.reason = reason
  }
}

export interface Resolver {
  /**
   * The addresses of a URL's `hostname`, all of them allowed. Literal addresses take the same way, with or without brackets.
   * Errors: `DestinationBlockedError` when any of them is not allowed, `NameError`, and the signal's reason.
   */
  resolve(hostname: string, signal?: AbortSignal): Promise<ResolvedAddress[]>
}

/** Resolves destinations and lets only allowed addresses through. One look-up a call: nothing is kept. */
export function createResolver({
  judge,
  lookup = createNameService(),
}: {
  judge: AddressJudge
  lookup?: Lookup
}): Resolver {
  return {
    async resolve(hostname, signal) {
      signal?.throwIfAborted()
      const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
      const family = isIP(host)
      // A colon is in no name, so this is an address, of whatever spelling.
      if (family === 0 && (host === '' || /[:%]/.test(host))) throw new DestinationBlockedError()
      const addresses =
        family === 0 ? await unlessAborted(lookup(host, signal), signal) : [{ address: host, family: family as 4 | 6 }]
      if (addresses.length === 0) throw new NameError('not_found')
      if (!addresses.every(({ address }) => judge(address))) throw new DestinationBlockedError()
      return addresses.map(({ address }) => ({ address, family: isIP(address) as 4 | 6 }))
    },
  }
}

/** The promise, or the signal's reason as soon as it is aborted; whatever becomes of the promise then is dropped. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
