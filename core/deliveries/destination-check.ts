import { parseAllowedCidrs } from '../../platform/addresses/addresses.ts'
import { createResolver, DestinationBlockedError, NameError } from '../../platform/addresses/resolve.ts'
import { type Core, perCore } from '../core.ts'
import { unavailable } from '../errors.ts'

/** Resolves the hosts to which a core may connect, and those of destinations. */
export const resolverOf = perCore(({ config }) =>
  createResolver({ isAllowed: parseAllowedCidrs(config.DELIVERY_ALLOWED_CIDRS) }),
)

/**
 * Whether every address of a destination is allowed. The worker checks it again at each attempt. Errors:
 * `ServiceUnavailable` if the name service does not answer.
 */
export async function isAllowedDestination(core: Core, { hostname }: URL): Promise<boolean> {
  try {
    await resolverOf(core).resolve(hostname, AbortSignal.timeout(5000))
    return true
  } catch (error) {
    // An unknown name gets the answer of a forbidden address, so that callers cannot tell which names exist.
    if (error instanceof DestinationBlockedError) return false
    if (error instanceof NameError && error.reason === 'not_found') return false
    throw unavailable()
  }
}
