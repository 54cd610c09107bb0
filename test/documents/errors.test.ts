import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorContracts } from '../../core/errors.ts'
import { errorsDocument } from '../../dev/write-errors.ts'
import { publicErrors } from '../../gateway/errors.ts'

const text = readFileSync(join(import.meta.dirname, '../../docs/errors.md'), 'utf8')

/** The contract's error tables (sections 1 and 5): codes, HTTP status, retryable, terminal. */
const contract: [codes: string, httpStatus: number, retryable: boolean, terminal: boolean][] = [
  ['ValidationFailed CredentialInUrl IdempotencyKeyInvalid IdempotencyKeyMismatch', 400, false, false],
  ['WidgetVersionUnsupported', 400, false, true],
  ['GrantMissing GrantExpired', 401, false, false],
  ['GrantInvalid SessionExpired SessionClosed', 401, false, true],
  ['IdentityAssertionInvalid IdentityAssertionExpired IdentityAssertionReplayed Unauthenticated', 401, false, false],
  ['OriginNotAllowed OriginMismatch SessionRevoked VisitorBanned ConnectionDisabled', 403, false, true],
  ['ConsentRequired PermissionDenied VisitorSuppressed', 403, false, false],
  ['InstallationNotFound', 404, false, true],
  ['CommandNotFound RouteNotAdvertised NotFound', 404, false, false],
  ['LeadNotFound SubscriptionNotFound AttemptNotFound', 404, false, false],
  ['MethodNotAllowed', 405, false, false],
  ['IdempotencyConflict CommandAlreadyResolved SubscriptionDisabled AttemptNotRetryable', 409, false, false],
  ['OperationInProgress', 409, true, false],
  ['CommandExpired', 410, false, false],
  ['PayloadTooLarge', 413, false, false],
  ['UnsupportedMediaType', 415, false, false],
  ['RateLimited', 429, true, false],
  ['InternalError', 500, true, false],
  ['ServiceUnavailable', 503, true, false],
]

describe('the error table', () => {
  it('the error table matches the contract for each code', () => {
    const expected = contract.flatMap(([codes, ...rule]) => codes.split(' ').map((code) => [code, ...rule]))
    const actual = publicErrors().map(({ code, httpStatus, retryable, terminal }) => [
      code,
      httpStatus,
      retryable,
      terminal,
    ])
    const byCode = (a: unknown[], b: unknown[]) => String(a[0]).localeCompare(String(b[0]))
    expect(actual.sort(byCode)).toEqual(expected.sort(byCode))
  })

  it('the error table is the same in core and gateway', () => {
    const inCore = [...errorContracts.values()].map(({ name, ...rule }) => ({ code: name, ...rule }))
    expect(publicErrors().map(({ meaning, remedy, ...row }) => row)).toEqual(inCore)
  })

  it('the error table has a meaning and a remedy for each code', () => {
    for (const { code, meaning, remedy } of publicErrors()) {
      for (const sentence of [meaning, remedy]) expect(sentence, code).toMatch(/^[A-Z`].+\.$/)
      expect(text).toContain(`\n## ${code}\n\n${meaning}\n\n**What to do:** ${remedy}\n`)
    }
  })
})

it('docs/errors.md is up to date', () => {
  expect(text).toBe(errorsDocument())
})
