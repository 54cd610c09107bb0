import type { Transport } from '@connectrpc/connect'
import type { RunningCore } from '../context.ts'
import { inMemoryTransport } from '../server.ts'

const transports = new WeakMap<RunningCore, Transport>()

/** Returns the transport to a core in this process. Kept, because making one registers every service. */
export function transportTo(core: RunningCore): Transport {
  const transport = transports.get(core) ?? inMemoryTransport(core)
  transports.set(core, transport)
  return transport
}
