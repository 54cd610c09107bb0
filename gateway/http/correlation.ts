import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const CORRELATION_ID = /^[A-Za-z0-9._-]{1,64}$/

/** Returns the `X-Correlation-Id` of the request if it is well formed, else a new id. */
export function correlationIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-correlation-id']
  return typeof given === 'string' && CORRELATION_ID.test(given) ? given : randomUUID()
}
