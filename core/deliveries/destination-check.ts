import { createAddressCheck } from '../../platform/addresses/addresses.ts'
import { createResolver, type Lookup } from '../../platform/addresses/resolve.ts'
import type { IsAllowedDestination } from './lead-subscriptions.ts'

/** Time limit for resolving a name, in milliseconds. */
const resolveTimeoutMs = 5000

/** Checks destinations when they are registered. The worker checks again at each attempt. */
export function createDestinationCheck(options: { allowedCidrs: string[]; lookup?: Lookup }): IsAllowedDestination {
  const { allowedCidrs, lookup } = options
  const resolver = createResolver({ isAllowed: createAddressCheck({ allowedCidrs }), ...(lookup && { lookup }) })
  return (url) =>
    resolver.resolve(url.hostname, AbortSignal.timeout(resolveTimeoutMs)).then(
      () => true,
      // A name that does not resolve has no allowed address. The caller does not learn the reason.
      () => false,
    )
}
