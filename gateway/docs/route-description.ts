import type { FastifyContextConfig } from 'fastify'
import { correlationIdPattern } from '../../contract/correlation-id.ts'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { CONTRACT_VERSION } from '../../contract/public-api.ts'
import { OperationId } from '../schemas/fields.ts'
import texts from './document.json' with { type: 'json' }

type OwnHeader = keyof typeof texts.headers

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Needs a workspace session. Such a route is not part of the widget API. */
    operator?: boolean
    /** In addition to those of the checks. */
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
const WITH_BODY: PublicErrorCode[] = ['UnsupportedMediaType', 'PayloadTooLarge']
const IDEMPOTENT: PublicErrorCode[] = ['IdempotencyKeyInvalid', 'IdempotencyConflict', 'OperationInProgress']

export function errorsOf(config: FastifyContextConfig, hasBody: boolean): Set<PublicErrorCode> {
  return new Set([
    ...EVERY_ROUTE,
    ...(config.operator ? OF_OPERATORS : OF_PAGES),
    ...(config.scoped ? SCOPED : []),
    ...(config.scoped && !config.expiredToo ? (['GrantExpired'] as const) : []),
    ...(hasBody ? WITH_BODY : []),
    ...(config.idempotent ? IDEMPOTENT : []),
    ...(config.keyField === undefined ? [] : (['IdempotencyKeyMismatch'] as const)),
    ...(config.advertisedBy === undefined ? [] : (['RouteNotAdvertised'] as const)),
    ...(config.rate === undefined ? [] : (['RateLimited'] as const)),
    ...(config.errors ?? []),
  ])
}

type Json = Record<string, unknown>

const text = { type: 'string' }

const PAGE_HEADERS: Json[] = [
  {
    name: 'Origin',
    in: 'header',
    schema: text,
    description:
      'Origin of the page, which the installation must allow. Browsers send it by themselves, so a page cannot set it. Other clients must send it.',
    example: 'http://localhost:8081',
  },
  {
    name: 'X-Service-Widget-Version',
    in: 'header',
    required: true,
    schema: { type: 'string', enum: [CONTRACT_VERSION] },
    description: 'Version of the contract that the client implements.',
    example: CONTRACT_VERSION,
  },
]

const EVERY_HEADER: Json[] = [
  {
    name: 'X-Correlation-Id',
    in: 'header',
    schema: { type: 'string', pattern: correlationIdPattern },
    description: 'Id of the request in logs and answers; generated if missing.',
  },
]

const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: OperationId,
  description: 'Stable per logical operation: a repeat with the same input gets the first answer again.',
  example: '018f3f9e-6a51-7bd2-9c6e-6a0d9e2f4b10',
}

/** Without `Authorization`, which the security scheme describes. */
export function parametersOf({ idempotent, keyField, headers = [], operator }: FastifyContextConfig): Json[] {
  const key = {
    ...IDEMPOTENCY_KEY,
    required: idempotent === true,
    ...(keyField && { description: `${IDEMPOTENCY_KEY.description} Equal to \`${keyField}\`.` }),
  }
  const every = operator ? EVERY_HEADER : [...PAGE_HEADERS, ...EVERY_HEADER]
  return [...every, ...(idempotent ? [key] : []), ...headers.map((name) => texts.headers[name])]
}

const CORRELATION = { 'X-Correlation-Id': { schema: text, description: 'Id of the request in the logs.' } }

export function headersOfAnswer({ scoped, operator, idempotent, headers }: FastifyContextConfig, status: number): Json {
  const replayed = {
    schema: { type: 'string', enum: ['true'] },
    description: 'Set if this repeats the answer of an earlier request.',
  }
  return {
    ...CORRELATION,
    ...(idempotent && status < 300 ? { 'Idempotency-Replayed': replayed } : {}),
    ...(scoped || operator ? { 'Cache-Control': { schema: text, description: 'Always `no-store`.' } } : {}),
    ...(headers?.includes('If-None-Match') ? { ETag: { schema: text } } : {}),
  }
}

export function headersOfFailure(status: number): Json {
  const seconds = { schema: { type: 'integer', minimum: 1 }, description: 'Seconds to wait, same as `retryAfter`.' }
  return {
    ...CORRELATION,
    ...(status === 429 || status === 503 ? { 'Retry-After': seconds } : {}),
    ...(status === 401 ? { 'WWW-Authenticate': { schema: { type: 'string', enum: ['Bearer'] } } } : {}),
  }
}
