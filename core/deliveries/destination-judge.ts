import { createAddressJudge } from '../../platform/addresses/addresses.ts'
import { createResolver, type Lookup } from '../../platform/addresses/resolve.ts'
import type { JudgeDestination } from './lead-subscriptions.ts'

/** How long a name may take to resolve, in milliseconds. */
const resolveWithinMs = 5000

/** The judge of destinations at their registration; the worker judges again at each attempt. */
export function createDestinationJudge(options: { allowedCidrs: string[]; lookup?: Lookup }): JudgeDestination {
  const { allowedCidrs, lookup } = options
  const resolver = createResolver({ judge: createAddressJudge({ allowedCidrs }), ...(lookup && { lookup }) })
  return (url) =>
    resolver.resolve(url.hostname, AbortSignal.timeout(resolveWithinMs)).then(
      () => true,
      // A name that nobody can resolve has no allowed address either, and the caller learns no more than that.
      () => false,
    )
}
