import type { HandlerContext } from '@connectrpc/connect'
import type { CoreContext } from '../context.ts'
import { unavailable } from '../errors.ts'
import { authenticator } from './caller.ts'
import { connectErrorOf } from './connect-errors.ts'
import { countRejection } from './observed-calls.ts'

/**
 * Decides by token, scope and number of running calls whether a call may run. The decision is made
 * before the request is decoded.
 */
export interface CallGate {
  /**
   * Returns a function that the caller must call when the call has ended. Rejects with a
   * `ConnectError`.
   */
  admit(context: HandlerContext): Promise<() => void>
}

/**
 * Creates the gate of a core. Calls over HTTP, over a link and in this process share the gate. It
 * rejects unary calls when `CALLS_MAX` calls are running, which limits the queue when the database
 * is slow. Streams do not count.
 */
export function createCallGate({ access, config, logger, metrics }: CoreContext): CallGate {
  const authenticate = authenticator(access)
  let running = 0

  return {
    async admit(context) {
      try {
        await authenticate(context)
        if (context.method.methodKind !== 'unary') return () => {}
        if (running >= config.CALLS_MAX) throw unavailable()
      } catch (error) {
        const rejection = connectErrorOf(error, { url: context.url, header: context.requestHeader }, logger)
        countRejection(metrics, context, rejection)
        throw rejection
      }
      running += 1
      return () => {
        running -= 1
      }
    },
  }
}
