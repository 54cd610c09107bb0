import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Code } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { connectCodeOf, publicErrors } from '../../contract/errors.ts'
import { errorsDocument } from '../../dev/make/errors.ts'

const text = readFileSync(join(import.meta.dirname, '../../docs/errors.md'), 'utf8')

/**
 * The contract's error tables (sections 1 and 5): codes, HTTP status, retryable, terminal. The last
 * column is the Connect code that internal services and the console get.
 */
const contract: [
  codes: string,
  httpStatus: number,
  retryable: boolean,
  terminal: boolean,
  connect: keyof typeof Code,
][] = [
  [
    'ValidationFailed CredentialInUrl IdempotencyKeyInvalid IdempotencyKeyMismatch',
    400,
    false,
    false,
    'InvalidArgument',
  ],
  ['WidgetVersionUnsupported', 400, false, true, 'InvalidArgument'],
  ['GrantMissing GrantExpired', 401, false, false, 'Unauthenticated'],
  ['GrantInvalid SessionExpired SessionClosed', 401, false, true, 'Unauthenticated'],
  [
    'IdentityAssertionInvalid IdentityAssertionExpired IdentityAssertionReplayed Unauthenticated',
    401,
    false,
    false,
    'Unauthenticated',
  ],
  [
    'OriginNotAllowed OriginMismatch SessionRevoked VisitorBanned ConnectionDisabled',
    403,
    false,
    true,
    'PermissionDenied',
  ],
  ['ConsentRequired PermissionDenied VisitorSuppressed', 403, false, false, 'PermissionDenied'],
  ['InstallationNotFound', 404, false, true, 'NotFound'],
  ['CommandNotFound RouteNotAdvertised NotFound', 404, false, false, 'NotFound'],
  ['LeadNotFound SubscriptionNotFound AttemptNotFound', 404, false, false, 'NotFound'],
  ['MethodNotAllowed', 405, false, false, 'Unimplemented'],
  ['IdempotencyConflict', 409, false, false, 'AlreadyExists'],
  [
    'CommandAlreadyResolved SubscriptionDisabled AttemptNotRetryable BotStopped RatingNotRequested RatingAlreadyGiven LastOwner',
    409,
    false,
    false,
    'FailedPrecondition',
  ],
  ['OperationInProgress', 409, true, false, 'FailedPrecondition'],
  ['CommandExpired', 410, false, false, 'FailedPrecondition'],
  ['PayloadTooLarge', 413, false, false, 'ResourceExhausted'],
  ['UnsupportedMediaType', 415, false, false, 'InvalidArgument'],
  ['RateLimited', 429, true, false, 'ResourceExhausted'],
  ['InternalError', 500, true, false, 'Internal'],
  ['ServiceUnavailable', 503, true, false, 'Unavailable'],
]

describe('the error table', () => {
  it('the error table matches the contract for each code', () => {
    const expected = contract.flatMap(([codes, ...rule]) => codes.split(' ').map((code) => [code, ...rule]))
    const actual = publicErrors.map((row) => {
      const { code, httpStatus, retryable, terminal } = row
      return [code, httpStatus, retryable, terminal, Code[connectCodeOf(row)]]
    })
    const byCode = (a: unknown[], b: unknown[]) => String(a[0]).localeCompare(String(b[0]))
    expect(actual.toSorted(byCode)).toEqual(expected.sort(byCode))
  })

  it('the error table has a meaning and a remedy for each code', () => {
    for (const { code, meaning, remedy } of publicErrors) {
      for (const sentence of [meaning, remedy]) expect(sentence, code).toMatch(/^[A-Z`].+\.$/)
      expect(text).toContain(`\n## ${code}\n\n${meaning}\n\n**What to do:** ${remedy}\n`)
    }
  })
})

it('docs/errors.md is up to date', () => {
  expect(text).toBe(errorsDocument())
})
