import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const CORRELATION_ID = /^[A-Za-z0-9._-]{1,64}$/

/** The request's own `X-Correlation-Id` where it is well formed, else a new one. */
export function correlationIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-correlation-id']
  return typeof given === 'string' && CORRELATION_ID.test(given) ? given : randomUUID()
}
