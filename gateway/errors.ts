import { Code, ConnectError } from '@connectrpc/connect'
import type { ErrorInfo } from '#proto/error/v1/error_pb.js'
import {
  type FieldIssue,
  isPublicErrorCode,
  type PublicError,
  type PublicErrorCode,
  publicError,
} from '../contract/errors.ts'
import { errorInfoOf } from '../core-client/error-info.ts'
import { NoSlotError } from '../platform/concurrency/slots.ts'

const MAX_ISSUES = 20
const CODES_WITH_ISSUES: PublicErrorCode[] = ['ValidationFailed', 'IdentityAssertionInvalid']
const UNAVAILABLE_RETRY_AFTER = 1

interface GatewayErrorDetails {
  retryAfter?: number
  issues?: FieldIssue[]
  allow?: string[]
  closesConnection?: boolean
  decidedBy?: 'gateway' | 'core'
  cause?: unknown
}

/** The only error that the gateway answers with. `toGatewayError` converts every other error. */
export class GatewayError extends Error {
  readonly code: PublicErrorCode
  readonly details: GatewayErrorDetails

  constructor(code: PublicErrorCode, details: GatewayErrorDetails = {}) {
    super(code, { cause: details.cause })
    this.name = 'GatewayError'
    this.code = code
    this.details = details
  }

  get rule(): PublicError {
    return publicError(this.code)
  }

  /** The wait before a retry in seconds. Always set for a 503. */
  get retryAfter(): number | undefined {
    return this.details.retryAfter ?? (this.rule.httpStatus === 503 ? UNAVAILABLE_RETRY_AFTER : undefined)
  }

  /** The body of every failure (specification, section 2.5). */
  envelope(correlationId: string) {
    const { issues = [] } = this.details
    return {
      code: this.code,
      retryable: this.rule.retryable,
      terminal: this.rule.terminal,
      retryAfter: this.retryAfter,
      correlationId,
      issues: CODES_WITH_ISSUES.includes(this.code) ? issues.slice(0, MAX_ISSUES) : undefined,
    }
  }
}

export const invalid = (path: string, rule: string, details: GatewayErrorDetails = {}) =>
  new GatewayError('ValidationFailed', { issues: [{ path, rule }], ...details })

export const unavailable = (cause?: unknown) => new GatewayError('ServiceUnavailable', { decidedBy: 'core', cause })

/** Converts the error detail of a core. An unknown code, of a newer core, becomes `InternalError`. */
export function errorFromInfo(info: ErrorInfo, cause?: unknown): GatewayError {
  // These codes concern the service token of the gateway, never the grant of a visitor.
  const isServiceToken = info.code === 'Unauthenticated' || info.code === 'PermissionDenied'
  if (isServiceToken || !isPublicErrorCode(info.code))
    return new GatewayError('InternalError', { decidedBy: 'core', cause })
  return new GatewayError(info.code, {
    decidedBy: 'core',
    retryAfter: info.retryAfter,
    issues: info.issues.map(({ path, rule }) => ({ path, rule })),
    cause,
  })
}

/**
 * Converts the error of a call with an operator's session. `Unauthenticated` and `PermissionDenied` concern
 * this session, so they are passed on.
 */
export function operatorError(error: unknown): GatewayError {
  const code = error instanceof ConnectError ? errorInfoOf(error)?.code : undefined
  const refused = code === 'Unauthenticated' || code === 'PermissionDenied'
  return refused ? new GatewayError(code, { decidedBy: 'core', cause: error }) : toGatewayError(error)
}

export function asOperator(error: unknown): never {
  throw operatorError(error)
}

const UNAVAILABLE_CODES: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Canceled,
  Code.Aborted,
  Code.ResourceExhausted,
])

/** Converts any error to a public error; unknown ones become `InternalError`. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (error instanceof NoSlotError) return unavailable(error)
  if (error instanceof ConnectError) {
    const info = errorInfoOf(error)
    if (info !== undefined) return errorFromInfo(info, error)
    if (UNAVAILABLE_CODES.has(error.code)) return unavailable(error)
    return new GatewayError('InternalError', { decidedBy: 'core', cause: error })
  }
  const { code, statusCode } = (error instanceof Error ? error : {}) as { code?: unknown; statusCode?: unknown }
  const cause = error
  switch (code) {
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return invalid('', 'url', { cause })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new GatewayError('UnsupportedMediaType', { cause })
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new GatewayError('PayloadTooLarge', { cause })
    default:
      // If the socket fails while Fastify reads a body, Fastify sets this status on the error.
      return statusCode === 400 ? invalid('', 'http', { cause }) : new GatewayError('InternalError', { cause })
  }
}
