import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { validCorrelationId } from '../../contract/correlation-id.ts'

/** Returns the `X-Correlation-Id` of the request if it is well formed, else a new id. */
export function correlationIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-correlation-id']
  return (typeof given === 'string' && validCorrelationId(given)) || randomUUID()
}
