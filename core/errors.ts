import type { Logger } from 'pino'
import type { FieldIssue, PublicErrorCode } from '../contract/errors.ts'

/** A failure with a public code. Callers see only the code, `retryAfter` and `issues`. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: PublicErrorCode
  /** Seconds after which the caller may retry. */
  readonly retryAfter: number | undefined
  readonly issues: FieldIssue[]

  constructor(code: PublicErrorCode, detail: { retryAfter?: number; issues?: FieldIssue[]; cause?: unknown } = {}) {
    super(code, { cause: detail.cause })
    this.code = code
    this.retryAfter = detail.retryAfter
    this.issues = detail.issues ?? []
  }
}

/** The caller's workspace; undefined for a caller of all workspaces. */
export type Scope = string | undefined

/**
 * Returns `found` if it is in the caller's workspace. Throws `code` if nothing was found, or something of another
 * workspace.
 */
export function inWorkspace<T extends { workspaceId: string }>(
  found: T | undefined,
  scope: Scope,
  code: PublicErrorCode = 'NotFound',
): T {
  if (!found || (scope !== undefined && found.workspaceId !== scope)) throw new ServiceError(code)
  return found
}

/** Returns the error for an unreachable or slow store, or a full queue. The caller must retry. */
export function unavailable(cause?: unknown): ServiceError {
  return new ServiceError('ServiceUnavailable', { retryAfter: 1, cause })
}

export const invalid = (path: string, rule: string): ServiceError =>
  new ServiceError('ValidationFailed', { issues: [{ path, rule }] })

/** Returns a handler that logs the name of a failure. The message says what happens next. */
export const logFailure =
  (logger: Logger, message: string) =>
  (error: unknown): void =>
    logger.warn({ reason: (error as Error).name }, message)
