import type { FastifyContextConfig } from 'fastify'
import type { PublicErrorCode } from '../errors.ts'

/** Request headers that only some routes read. */
export type OwnHeader = 'Last-Event-ID' | 'If-None-Match'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs a workspace session and is not part of the widget API. */
    operator?: boolean
    /** Facts for the description that checks and schemas do not show. */
    described?: {
      /** Error codes of the route itself, in addition to those of its checks. */
      errors?: PublicErrorCode[]
      headers?: OwnHeader[]
      /** The answer is the event stream. */
      stream?: boolean
    }
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

/** Returns every error code that a route can answer, from its checks and its description. */
export function errorsOf(config: FastifyContextConfig, hasBody: boolean): Set<PublicErrorCode> {
  return new Set([
    ...EVERY_ROUTE,
    ...(config.operator ? OF_OPERATORS : OF_PAGES),
    ...(config.scoped ? SCOPED : []),
    ...(hasBody ? WITH_BODY : []),
    ...(config.idempotent ? IDEMPOTENT : []),
    ...(config.keyField === undefined ? [] : (['IdempotencyKeyMismatch'] as const)),
    ...(config.advertisedBy === undefined ? [] : (['RouteNotAdvertised'] as const)),
    ...(config.rate === undefined ? [] : (['RateLimited'] as const)),
    ...(config.described?.errors ?? []),
  ])
}
