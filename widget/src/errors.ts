import type { FieldIssue, SessionEnd, WidgetErrorDetail } from './types.ts'

/** Codes the package itself adds to those of the service's error envelope. */
export type ClientErrorCode =
  | 'network_error'
  | 'timeout'
  | 'unexpected_response'
  | 'realtime_terminal_failure'
  | 'outbox_full'
  | 'message_empty'
  | 'message_too_long'
  | 'session_ended'
  | 'not_started'
  | 'identity_unavailable'
  | 'identity_mismatch'
  | 'request_unknown'
  | 'aborted'

export interface RequestErrorFields {
  /** HTTP status, 0 where there was no answer. */
  status?: number
  retryable?: boolean
  terminal?: boolean
  retryAfterMs?: number
  correlationId?: string
  /** Of `ValidationFailed`. */
  issues?: readonly FieldIssue[]
}

/**
 * The one error of the package. `retryable` and `terminal` are the service's own words where it answered with an
 * envelope (section 2.5 of the specification); a network failure is retryable.
 */
export class WidgetError extends Error {
  declare readonly code: string
  readonly status: number = 0
  readonly retryable: boolean = false
  readonly terminal: boolean = false
  declare readonly retryAfterMs?: number
  declare readonly correlationId?: string
  readonly issues: readonly FieldIssue[] = []

  constructor(code: string, fields: RequestErrorFields = {}) {
    super(`The chat could not go on: ${code}`)
    this.name = 'WidgetError'
    this.code = code
    Object.assign(this, fields)
  }

  get detail(): WidgetErrorDetail {
    return { code: this.code, recoverable: this.retryable && !this.terminal }
  }
}

export function toWidgetError(error: unknown): WidgetError {
  return error instanceof WidgetError ? error : new WidgetError('unexpected_response')
}

const sessionEnds: Record<string, SessionEnd> = {
  SessionExpired: 'session.expired',
  GrantInvalid: 'session.expired',
  SessionClosed: 'session.closed',
  SessionRevoked: 'session.revoked',
  VisitorBanned: 'visitor.banned',
  ConnectionDisabled: 'connection.disabled',
}

/** What each ends for good; two of them one session, and not the visitor's right to chat. */
export const terminalEvents: readonly string[] = Object.values(sessionEnds)

export function isOneSessionsEnd(event: SessionEnd) {
  return event === 'session.expired' || event === 'session.closed'
}

/** The terminal event that an error code stands for; undefined where it is not the session that ended. */
export function sessionEndOf(code: string): SessionEnd | undefined {
  return sessionEnds[code]
}
