import { Code, ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'

/** A failed call, in words for an operator. */
export interface Failure {
  /** What happened and what to do. */
  text: string
  /** The call may have been carried out all the same: repeat it with the same key only. */
  ambiguous: boolean
  code: string
  /** There is no such thing, and asking again changes nothing. */
  missing: boolean
  /** Which fields break which rule: a path such as `/origins/0`. */
  issues: { path: string; rule: string }[]
}

const texts: Record<string, string> = {
  SubscriptionDisabled: 'The subscription is disabled. Enable it first; what is held then goes on by itself.',
  AttemptNotRetryable: 'This delivery is on its way or has been accepted already, so there is nothing to retry.',
  IdempotencyConflict: 'This was done before with other content. Reload to see how it stands.',
  OperationInProgress: 'The same change is still being made. Try again in a moment.',
  CommandAlreadyResolved: 'The visitor has decided already. The state above is up to date now.',
  CommandExpired: 'The request ran out of time. Ask again if you still need it.',
  SessionExpired: 'The visitor’s session has expired, so nothing can be shown to them now.',
  SessionClosed: 'The visitor’s session is closed, so nothing can be shown to them now.',
  SessionRevoked: 'The visitor’s session was revoked, so nothing can be shown to them now.',
  VisitorBanned: 'The visitor is banned, so nothing can be shown to them.',
  ConnectionDisabled: 'The connection is disabled. Enable it under Installations.',
  RouteNotAdvertised: 'The installation does not offer this. Switch the capability on under Installations.',
  PayloadTooLarge: 'The lead is too large for one delivery. Map fewer fields.',
}

const rules: Record<string, string> = {
  required: 'is required',
  minLength: 'is too short',
  maxLength: 'is too long',
  minItems: 'needs at least one entry',
  maxItems: 'has too many entries',
  pattern: 'has a form that is not allowed',
  format: 'has a form that is not allowed',
  enum: 'is not one of the choices',
  origin: 'must be on the visitor’s own site, or on an origin that the installation allows',
  publicAddress: 'must lead to a public address; private and internal ones are refused',
  uniqueItems: 'has an entry twice',
}

/** The first call with the key still runs. */
const unsettled = new Set(['OperationInProgress'])

/** Any failure of a call, as an operator may see it. */
export function describeFailure(error: unknown): Failure {
  const failure = ConnectError.from(error)
  const info = failure.findDetails(ErrorInfoSchema)[0]
  const code = info?.code || Code[failure.code]
  const issues = info?.issues.map(({ path, rule }) => ({ path, rule })) ?? []
  // Without the core's own word it is not known how far the call came.
  const ambiguous = !info && unknownOutcome.has(failure.code)
  return {
    code,
    missing: failure.code === Code.NotFound,
    issues,
    ambiguous: ambiguous || unsettled.has(code) || failure.code === Code.Unavailable || failure.code === Code.Internal,
    text: texts[code] ?? textOf(failure.code, issues, info?.retryAfter),
  }
}

const unknownOutcome = new Set([Code.Unavailable, Code.Unknown, Code.DeadlineExceeded, Code.Canceled, Code.Internal])

function textOf(code: Code, issues: Failure['issues'], retryAfter: number | undefined): string {
  switch (code) {
    case Code.InvalidArgument:
      return issues.length > 0 ? `${issues.map(issueText).join('. ')}.` : 'Something in this form is not allowed.'
    case Code.Unauthenticated:
      return 'Your session is not valid any more. Sign in again.'
    case Code.PermissionDenied:
      return 'Your session does not allow this. Ask for one with more rights.'
    case Code.NotFound:
      return 'This does not exist, or belongs to another workspace.'
    case Code.ResourceExhausted:
      return `That was too much at once. Try again in ${Math.ceil(retryAfter ?? 5)} seconds.`
    case Code.Unimplemented:
      return 'This server does not offer that yet.'
    case Code.FailedPrecondition:
    case Code.AlreadyExists:
      return 'This is not possible as things stand. Reload to see how they do.'
    case Code.Internal:
      return 'The service failed at this. Try again; if it stays, tell whoever runs it.'
    default:
      return 'The service cannot be reached. Check the connection and try again.'
  }
}

export function issueText({ path, rule }: { path: string; rule: string }): string {
  const words = path
    .split('/')
    .filter(Boolean)
    .map((part) =>
      /^\d+$/.test(part) ? `${Number(part) + 1}` : part.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase(),
    )
    .join(' ')
  const name = words.charAt(0).toUpperCase() + words.slice(1)
  return `${name || 'A field'} ${rules[rule] ?? 'is not allowed'}`
}
