import { parseAllowedCidrs } from '../../platform/addresses/allowed-cidrs.ts'
import { NameError } from '../../platform/addresses/name-service.ts'
import { createResolver, DestinationBlockedError } from '../../platform/addresses/resolve.ts'
import { type Core, perCore } from '../core.ts'
import { unavailable } from '../errors.ts'

/** Maximum duration of a name lookup, in milliseconds. */
const resolveTimeoutMs = 5000

/** Resolves the hosts to which a core may connect, and those of destinations. */
export const resolverOf = perCore(({ config }) =>
  createResolver({ isAllowed: parseAllowedCidrs(config.DELIVERY_ALLOWED_CIDRS) }),
)

/**
 * Returns true if every address that a destination resolves to is allowed. Does not return the
 * reason of a rejection. The delivery worker checks it again at each attempt. Errors:
 * `ServiceUnavailable` if the name service does not answer.
 */
export async function isAllowedDestination(core: Core, { hostname }: URL): Promise<boolean> {
  try {
    await resolverOf(core).resolve(hostname, AbortSignal.timeout(resolveTimeoutMs))
    return true
  } catch (error) {
    // A host name without an address gets the same answer as a forbidden address, so that
    // callers cannot tell which names exist.
    if (error instanceof DestinationBlockedError) return false
    if (error instanceof NameError && error.reason === 'not_found') return false
    throw unavailable()
  }
}
