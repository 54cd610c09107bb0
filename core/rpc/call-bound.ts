import type { HandlerContext } from '@connectrpc/connect'
import { unavailable } from '../errors.ts'

/**
 * Turns calls away while as many are under way as may be: what waits for a slow database is bounded, and whoever is too
 * much is told so at once. Streams wait for nobody and do not count. Errors: `ServiceUnavailable`.
 */
export function callBound(max: number): (context: HandlerContext) => void {
  let underWay = 0
  return ({ method, signal }) => {
    if (method.methodKind !== 'unary') return
    if (underWay >= max) throw unavailable()
    underWay += 1
    // Aborted when the call is over, however it ends.
    signal.addEventListener('abort', () => (underWay -= 1), { once: true })
  }
}
