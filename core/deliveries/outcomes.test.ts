import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { retryDelay } from '../../contract/retry-delay.ts'
import { forAll } from '../../test/support/for-all.ts'
import type { FailureReason, ResponseClass } from './model.ts'
import { classify } from './outcomes.ts'

const statuses: [number[], ResponseClass, boolean][] = [
  [[200, 201, 202, 204, 299], 'accepted', false],
  [[300, 301, 302, 303, 304, 307, 308], 'redirected', false],
  [[400, 422], 'rejected_payload', false],
  [[401, 403], 'rejected_auth', false],
  [[404, 410], 'gone', false],
  [[409], 'conflict', false],
  [[402, 405, 406, 411, 412, 413, 414, 415, 418, 421, 423, 424, 426, 428, 431, 451, 499], 'rejected', false],
  [[429], 'rate_limited', true],
  [[408, 425, 500, 501, 502, 503, 504, 507, 599], 'server_error', true],
  [[100, 101, 103], 'unreadable_answer', true],
]

describe('answers of a destination', () => {
  it.each(
    statuses.flatMap(([list, responseClass, retryable]) => list.map((s) => [s, responseClass, retryable] as const)),
  )('an answer with status %i is classified as %s', (status, responseClass, retryable) => {
    expect(classify({ status })).toMatchObject({ responseClass, retryable })
  })

  it.each([
    [401, 'rejected_auth'],
    [403, 'rejected_auth'],
    [404, 'not_found'],
    [410, 'gone'],
    [400, undefined],
    [200, undefined],
    [500, undefined],
  ])('an answer with status %i is classified with the subscription fault %s', (status, fault) => {
    expect(classify({ status }).fault).toBe(fault)
  })

  it.each([
    [429, 7000],
    [503, 7000],
    [500, undefined],
    [408, undefined],
    [200, undefined],
  ])('an answer with status %i and a Retry-After of 7000 ms requests a delay of %s ms', (status, counted) => {
    expect(classify({ status, retryAfterMs: 7000 }).retryAfterMs).toBe(counted)
  })

  it('an answer without a Retry-After header sets no delay', () => {
    expect(classify({ status: 429 })).toStrictEqual({ responseClass: 'rate_limited', retryable: true })
  })

  it('every status from 100 to 599 has a response class', () => {
    forAll([fc.integer({ min: 100, max: 599 })], {}, (status) => {
      const { responseClass, retryable, fault } = classify({ status })
      expect(responseClass).toBeTruthy()
      if (responseClass === 'accepted') expect(Math.floor(status / 100)).toBe(2)
      if (fault) expect(retryable).toBe(false)
    })
  })
})

describe('attempts without an answer', () => {
  it.each<[FailureReason, ResponseClass, boolean]>([
    ['timeout', 'timeout', true],
    ['destination_blocked', 'destination_blocked', false],
    ['name_not_found', 'network_error', true],
    ['name_service_failed', 'network_error', true],
    ['connection_refused', 'network_error', true],
    ['unreachable', 'network_error', true],
    ['connection_reset', 'network_error', true],
    ['certificate_invalid', 'network_error', true],
    ['tls_failed', 'network_error', true],
    ['protocol_error', 'unreadable_answer', true],
    ['response_too_large', 'rejected', false],
    ['network_error', 'network_error', true],
  ])('an attempt that failed because of %s is classified as %s', (reason, responseClass, retryable) => {
    expect(classify({ reason, phase: 'connect' })).toEqual({ responseClass, retryable })
  })
})

describe('the retry schedule', () => {
  const s = 1000
  const delays = [5 * s, 30 * s, 120 * s, 600 * s, 1800 * s, 7200 * s, 21_600 * s, 43_200 * s]

  it.each(delays.map((delay, index) => [index + 1, delay]))(
    'the retry schedule waits after attempt %i for %i ms',
    (attempt, delay) => {
      expect(retryDelay(attempt, { random: () => 0 })).toBe(delay)
      expect(retryDelay(attempt, { random: () => 0.5 })).toBe(delay + delay / 10)
    },
  )

  it('the retry schedule ends with the ninth attempt, despite a Retry-After', () => {
    expect(retryDelay(9, { random: () => 0 })).toBeUndefined()
    expect(retryDelay(9, { random: () => 0, retryAfterMs: 1000 })).toBeUndefined()
    expect(retryDelay(50, { random: () => 0 })).toBeUndefined()
  })

  it('the retry schedule waits for its own delay or the Retry-After time (at most an hour), whichever is longer, plus up to 20 percent', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.nat(200_000_000),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (attempt, retryAfterMs, chance) => {
          const least = Math.max(delays[attempt - 1]!, Math.min(retryAfterMs, 3_600_000))
          const delay = retryDelay(attempt, { retryAfterMs, random: () => chance })!
          expect(delay).toBeGreaterThanOrEqual(least)
          expect(delay).toBeLessThanOrEqual(Math.ceil(least * 1.2))
        },
      ),
    )
  })
})
