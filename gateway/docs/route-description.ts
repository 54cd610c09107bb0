import type { FastifyContextConfig } from 'fastify'
import { correlationIdPattern } from '../../contract/correlation-id.ts'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { CONTRACT_VERSION } from '../../contract/public-api.ts'
import { OperationId } from '../schemas/fields.ts'
import texts from './document.json' with { type: 'json' }

type OwnHeader = keyof typeof texts.headers

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route needs a workspace session. It is then not part of the widget API. */
    operator?: boolean
    /** Error codes of the route, in addition to those of its checks. */
    errors?: readonly PublicErrorCode[]
    headers?: readonly OwnHeader[]
    stream?: boolean
  }
}

const OF_PAGES: PublicErrorCode[] = ['OriginNotAllowed', 'WidgetVersionUnsupported']
const OF_OPERATORS: PublicErrorCode[] = ['Unauthenticated', 'PermissionDenied']
const EVERY_ROUTE: PublicErrorCode[] = ['CredentialInUrl', 'ValidationFailed', 'InternalError', 'ServiceUnavailable']
const SCOPED: PublicErrorCode[] = [
  'GrantMissing',
  'GrantInvalid',
  'OriginMismatch',
  'SessionExpired',
  'SessionClosed',
  'SessionRevoked',
  'VisitorBanned',
  'ConnectionDisabled',
]

const when = (applies: unknown, ...codes: PublicErrorCode[]) => (applies ? codes : [])

export const errorsOf = (config: FastifyContextConfig, hasBody: boolean): Set<PublicErrorCode> =>
  new Set([
    ...EVERY_ROUTE,
    ...(config.operator ? OF_OPERATORS : OF_PAGES),
    ...when(config.scoped, ...SCOPED),
    ...when(config.scoped && !config.expiredToo, 'GrantExpired'),
    ...when(hasBody, 'UnsupportedMediaType', 'PayloadTooLarge'),
    ...when(config.idempotent, 'IdempotencyKeyInvalid', 'IdempotencyConflict', 'OperationInProgress'),
    ...when(config.keyField, 'IdempotencyKeyMismatch'),
    ...when(config.advertisedBy, 'RouteNotAdvertised'),
    ...when(config.rate, 'RateLimited'),
    ...(config.errors ?? []),
  ])

type Json = Record<string, unknown>

const { common, answers } = texts
const VERSION = { ...common.version, schema: { type: 'string', enum: [CONTRACT_VERSION] }, example: CONTRACT_VERSION }
const EVERY_HEADER = { ...common.correlationId, schema: { type: 'string', pattern: correlationIdPattern } }

/** Describes the request headers without `Authorization`, which the security scheme describes. */
export function parametersOf({ idempotent, keyField, headers = [], operator }: FastifyContextConfig): Json[] {
  const key = { ...common.idempotencyKey, schema: OperationId, required: idempotent === true }
  if (keyField) key.description += ` Equal to \`${keyField}\`.`
  const every = operator ? [EVERY_HEADER] : [common.origin, VERSION, EVERY_HEADER]
  return [...every, ...(idempotent ? [key] : []), ...headers.map((name) => texts.headers[name])]
}

export const headersOfAnswer = (
  { scoped, operator, idempotent, headers }: FastifyContextConfig,
  status: number,
): Json => ({
  'X-Correlation-Id': answers.correlationId,
  ...(idempotent && status < 300 && { 'Idempotency-Replayed': answers.replayed }),
  ...((scoped || operator) && { 'Cache-Control': answers.cacheControl }),
  ...(headers?.includes('If-None-Match') && { ETag: answers.etag }),
})

export const headersOfFailure = (status: number): Json => ({
  'X-Correlation-Id': answers.correlationId,
  ...((status === 429 || status === 503) && { 'Retry-After': answers.retryAfter }),
  ...(status === 401 && { 'WWW-Authenticate': answers.authenticate }),
})
