import { createAddressCheck } from '../../platform/addresses/addresses.ts'
import { type Lookup, NameError } from '../../platform/addresses/name-service.ts'
import { createResolver, DestinationBlockedError } from '../../platform/addresses/resolve.ts'
import { unavailable } from '../errors.ts'

/**
 * Returns true if every address that a destination resolves to is allowed. Does not return the
 * reason of a rejection. Errors: `ServiceUnavailable` if the name service does not answer.
 */
export type IsAllowedDestination = (url: URL) => Promise<boolean>

/** Maximum duration of a name lookup, in milliseconds. */
const resolveTimeoutMs = 5000

/**
 * Checks a destination when it is registered. The delivery worker checks it again at each attempt.
 */
export function createDestinationCheck(options: { allowedCidrs: string[]; lookup?: Lookup }): IsAllowedDestination {
  const { allowedCidrs, lookup } = options
  const resolver = createResolver({ isAllowed: createAddressCheck({ allowedCidrs }), lookup })
  return (url) =>
    resolver.resolve(url.hostname, AbortSignal.timeout(resolveTimeoutMs)).then(
      () => true,
      (error: Error) => {
        // A host name without an address gets the same answer as a forbidden address, so that
        // callers cannot tell which names exist.
        if (error instanceof DestinationBlockedError) return false
        if (error instanceof NameError && error.reason === 'not_found') return false
        throw unavailable()
      },
    )
}
