import type { Transport } from '@connectrpc/connect'
import type { CoreContext } from '../context.ts'
import { inMemoryTransport } from '../server.ts'

const transports = new WeakMap<CoreContext, Transport>()

/** Returns the transport to a core in this process. Kept, because making one registers every service. */
export function transportTo(core: CoreContext): Transport {
  const transport = transports.get(core) ?? inMemoryTransport(core)
  transports.set(core, transport)
  return transport
}
