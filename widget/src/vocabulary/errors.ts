import type { ServiceErrorCode } from './gen/wire.ts'
import type { ErrorCode, FieldIssue, SessionEnd, WidgetErrorDetail } from './types.ts'

interface RequestErrorFields {
  /** HTTP status of the response, or 0 if there was no response. */
  status?: number
  retryable?: boolean
  terminal?: boolean
  retryAfterMs?: number
  correlationId?: string
  /** Rules that the request broke. Only for the codes `ValidationFailed` and `IdentityAssertionInvalid`. */
  issues?: readonly FieldIssue[]
}

/**
 * An error of this package. `retryable` and `terminal` come from the service's error envelope
 * (section 2.5 of the specification). Network failures and responses without an envelope are
 * retryable. If an error ends the session, its code is the name of the terminal event.
 */
export class WidgetError extends Error {
  declare readonly code: ErrorCode
  readonly status: number = 0
  readonly retryable: boolean = false
  readonly terminal: boolean = false
  declare readonly retryAfterMs?: number
  declare readonly correlationId?: string
  declare readonly issues?: readonly FieldIssue[]

  constructor(code: ErrorCode, fields?: RequestErrorFields) {
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

/** `replay.reset.required` ends the session only if it requires a new authentication. */
export const terminalEvents: readonly string[] = [...Object.values(sessionEnds), 'replay.reset.required']

/** Returns true if this package handles this security event. */
export const isKnownSecurity = (type: string) => type === 'session.identified' || terminalEvents.includes(type)

/** Returns true if this package handles this command event. */
export const isKnownCommand = (type: string) => /^(navigation|screenshot)\.(requested|cancelled)$/.test(type)

/** A code that ends the session becomes the name of its event. */
export function packageCode(code: string): ErrorCode {
  return sessionEnds[code] ?? (code as ServiceErrorCode)
}

/** Returns the code if it is the name of an event that ends the session. */
export function sessionEndOf(code: string | undefined): SessionEnd | undefined {
  return terminalEvents.includes(code!) ? (code as SessionEnd) : undefined
}
