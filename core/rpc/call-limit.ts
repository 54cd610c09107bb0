import type { HandlerContext } from '@connectrpc/connect'
import { unavailable } from '../errors.ts'

/**
 * Rejects unary calls beyond a limit of concurrent ones, which bounds the queue of a slow database.
 * Streams do not count. Errors: `ServiceUnavailable`.
 */
export function callLimit(max: number): (context: HandlerContext) => void {
  let underWay = 0
  return ({ method, signal }) => {
    if (method.methodKind !== 'unary') return
    if (underWay >= max) throw unavailable()
    underWay += 1
    // Connect aborts the signal when the call ends, on success too.
    signal.addEventListener('abort', () => (underWay -= 1), { once: true })
  }
}
