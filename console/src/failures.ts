import { Code, ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { translate } from './language.ts'
import fieldNames from './languages/field-names.json' with { type: 'json' }

const names: Record<string, string> = fieldNames

/** A failed call, described for an operator. */
export interface Failure {
  /** States the problem and what the operator can do. */
  text: string
  /** True if the call may have succeeded. Repeat such a call only with the same idempotency key. */
  ambiguous: boolean
  code: string
  /** True if the object does not exist. A retry does not help. */
  missing: boolean
  /** Invalid fields of the input. A path has the form `/origins/0`. */
  issues: { path: string; rule: string }[]
}

const texts: Record<string, string> = {
  SubscriptionDisabled: 'The destination is disabled. Enable it first; waiting deliveries are then sent.',
  AttemptNotRetryable: 'This delivery is in progress or already accepted and cannot be retried.',
  IdempotencyConflict: 'This request was already made with different content. Reload to see the current state.',
  OperationInProgress: 'The same change is still in progress. Try again in a moment.',
  CommandAlreadyResolved: 'The visitor has already answered this request.',
  CommandExpired: 'The request has expired. Send a new one if you still need it.',
  SessionExpired: 'The visitor’s session has expired. Requests cannot be shown.',
  SessionClosed: 'The visitor’s session is closed. Requests cannot be shown.',
  SessionRevoked: 'The visitor’s session was revoked. Requests cannot be shown.',
  VisitorBanned: 'The visitor is banned. Requests cannot be shown.',
  ConnectionDisabled: 'The connection is disabled. Enable it under Websites.',
  RouteNotAdvertised: 'This capability is turned off. Turn it on under Websites.',
  LastOwner: 'This is the only owner. Make another account an owner first.',
  PayloadTooLarge: 'The lead is too large for one delivery. Map fewer fields.',
}

const rules: Record<string, string> = {
  required: 'is required',
  minLength: 'is too short',
  maxLength: 'is too long',
  minItems: 'needs at least one entry',
  maxItems: 'has too many entries',
  pattern: 'has an invalid format',
  format: 'has an invalid format',
  enum: 'is not an allowed value',
  origin: 'must be on the visitor’s site or another allowed address',
  publicAddress: 'must have a public address; this name has none, or its address is private',
  uniqueItems: 'contains a duplicate',
  timeZone: 'is not a known time zone',
  date: 'is not a date of the calendar',
  endsBeforeBegins: 'must be later than the beginning',
  overlap: 'overlaps with other hours of the day',
  unique: 'is in use already',
  locale: 'contains an invalid language tag',
}

export function describeFailure(error: unknown): Failure {
  const failure = ConnectError.from(error)
  const info = failure.findDetails(ErrorInfoSchema)[0]
  const code = info?.code || Code[failure.code]
  const issues = info?.issues ?? []
  return {
    code,
    missing: failure.code === Code.NotFound,
    issues,
    // The core adds details to its errors, so an error without them may come from a call that succeeded. With
    // `OperationInProgress`, the first call with the same key may still be running.
    ambiguous:
      code === 'OperationInProgress' || (info ? ambiguousCodes : ambiguousWithoutDetails).includes(failure.code),
    text: texts[code] ?? textOf(failure.code, issues, info?.retryAfter),
  }
}

/** With these codes the call may have succeeded, also if the core added details. */
const ambiguousCodes = [Code.Unavailable, Code.Internal]
const ambiguousWithoutDetails = [...ambiguousCodes, Code.Unknown, Code.DeadlineExceeded, Code.Canceled]

const codeTexts: Partial<Record<Code, string>> = {
  [Code.Unauthenticated]: 'Your session is no longer valid. Sign in again.',
  [Code.PermissionDenied]: 'Your session does not have permission for this.',
  [Code.NotFound]: 'This does not exist, or belongs to another workspace.',
  [Code.Unimplemented]: 'This server does not support this.',
  [Code.FailedPrecondition]: 'This is not possible in the current state. Reload to see the changes.',
  [Code.AlreadyExists]: 'This is not possible in the current state. Reload to see the changes.',
  [Code.Internal]: 'Internal error. Try again. If it persists, contact your administrator.',
}

function textOf(code: Code, issues: Failure['issues'], retryAfter = 5) {
  if (code === Code.ResourceExhausted) return `Too many requests. Try again in ${Math.ceil(retryAfter)} seconds.`
  if (code !== Code.InvalidArgument)
    return codeTexts[code] ?? 'The service cannot be reached. Check the connection and try again.'
  return issues.length > 0 ? issues.map(issueText).join(' ') : 'The form has an invalid value.'
}

// Forms for suppressions send a single entry, so the text omits the entry's index.
export const issueText = (issue?: Failure['issues'][number]) =>
  issue &&
  `${fieldWords(issue.path.replace(/^\/entries\/\d+/, '').split('/')) || 'A field'} ${rules[issue.rule] ?? 'is not allowed'}.`

/** Returns the words for the parts of a path: names of fields, and numbers from 1. Groups of fields have no words. */
export const fieldWords = (path: string[]) =>
  path
    .map((part) => (/^\d+$/.test(part) ? `${Number(part) + 1}` : translate(names[part] ?? part)))
    .filter(Boolean)
    .join(' ')
