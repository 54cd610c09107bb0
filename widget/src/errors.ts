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
 * The one error of the package. `retryable` and `terminal` are those of the service's error envelope (section 2.5 of the
 * specification). A network failure and an answer that is no envelope are retryable. The code of a terminal condition is the
 * name of its event.
 */
export class WidgetError extends Error {
  declare readonly code: string
  readonly status: number = 0
  readonly retryable: boolean = false
  readonly terminal: boolean = false
  declare readonly retryAfterMs?: number
  declare readonly correlationId?: string
  declare readonly issues?: readonly FieldIssue[]

  constructor(code: string, fields?: RequestErrorFields) {
    super(`Chat: ${code}`)
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

/** Events of the stream that end the session; `replay.reset.required` only if it asks for a new session. */
export const terminalEvents: readonly string[] = [...Object.values(sessionEnds), 'replay.reset.required']

/** The package's code for a code of the service: a terminal condition has the name of its event. */
export function packageCode(code: string): string {
  return sessionEnds[code] ?? code
}

/** Only one session has ended; the visitor may begin another one. */
export function isOneSessionsEnd(code: string) {
  return code === 'session.expired' || code === 'session.closed'
}

/** After this end a reload does not begin a new session by itself. */
export function isLastingEnd(code: string | undefined): code is SessionEnd {
  return /^(session\.revoked|visitor|replay)/.test(code!)
}

/** The code as a terminal event; undefined if it is no end of a session. */
export function sessionEndOf(code: string): SessionEnd | undefined {
  return terminalEvents.includes(code) ? (code as SessionEnd) : undefined
}
