import type { Transport } from '@connectrpc/connect'
import type { Slots } from '../../platform/concurrency/slots.ts'

/** Wraps a transport with a limit: slow cores cause 503 answers instead of memory growth. */
export function createBoundedTransport(transport: Transport, calls: Pick<Slots, 'run'>): Transport {
  return {
    unary: (...call) => calls.run(() => transport.unary(...call)),
    stream: (...call) => calls.run(() => transport.stream(...call)),
  }
}
