import type { IncomingMessage } from 'node:http'
import type { GatewayError } from '../errors.ts'
import { correlationIdOf } from './correlation.ts'
import { SECURITY_HEADERS } from './security-headers.ts'

/**
 * Encodes a failure that is written to the connection itself. `request` is set if its headers were
 * read.
 */
export function rawAnswer(failure: GatewayError, request?: IncomingMessage): string {
  const correlationId = correlationIdOf(request ?? { headers: {} })
  const body = JSON.stringify(failure.envelope(correlationId))
  const { retryAfter, details } = failure
  return [
    `HTTP/1.1 ${failure.rule.httpStatus} ${failure.code}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Correlation-Id: ${correlationId}`,
    ...Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`),
    'Cache-Control: no-store',
    ...(details.allow === undefined ? [] : [`Allow: ${details.allow.join(', ')}`]),
    ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
