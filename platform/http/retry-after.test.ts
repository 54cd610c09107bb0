import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { parseRetryAfter } from './retry-after.ts'

const now = Date.UTC(1994, 10, 6, 8, 49, 7)

describe('parseRetryAfter', () => {
  it.each([
    ['0', 0],
    ['120', 120_000],
    ['1.5', 1_500],
    ['0.0001', 1],
    [' 7 ', 7_000],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
    ['06 Nov 1994 08:49:37 GMT', 30_000],
    ['Sun, 06 Nov 1994 10:49:37 +0200', 30_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
    ['Sun Nov  6 08:49:37 1994', 30_000],
    ['Sat, 05 Nov 1994 08:49:37 GMT', 0],
    ['86400000', 86_400_000_000],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ])('parseRetryAfter parses %j as %d ms', (header, expected) => {
    expect(parseRetryAfter(header, now)).toBe(expected)
  })

  it.each(
    [
      '',
      'soon',
      '-1',
      '+1',
      '1e3',
      '0x10',
      '1,5',
      '.5',
      '5.',
      '5 s',
      'Infinity',
      'NaN',
      '1994',
      '1994-11-06T08:49:37Z',
      'Sun, 99 Nov 1994 08:49:37 GMT',
      'Sun, 06 Foo 1994 08:49:37 GMT',
      'Sun, 06 Nov 1994 25:49:37 GMT',
      'Sun Nov  6 08:49:37',
    ].filter((value) => value !== '1994'),
  )('parseRetryAfter ignores %j', (header) => {
    expect(parseRetryAfter(header, now)).toBeUndefined()
  })

  it('parseRetryAfter returns undefined for a missing header', () => {
    expect(parseRetryAfter(undefined, now)).toBeUndefined()
  })

  it('parseRetryAfter returns the longest valid wait if there are several headers', () => {
    expect(parseRetryAfter(['2', 'soon', '30', '5'], now)).toBe(30_000)
    expect(parseRetryAfter(['soon', ''], now)).toBeUndefined()
  })

  it('parseRetryAfter returns undefined or a whole number of milliseconds within range for any text', () => {
    const texts = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789.,:+- GMTNovSu') }))
    forAll([texts, fc.date({ noInvalidDate: true })], {}, (text, at) => {
      const wait = parseRetryAfter(text, at.getTime())
      expect(wait === undefined || (Number.isSafeInteger(wait) && wait >= 0)).toBe(true)
      if (wait !== undefined) expect(BigInt(wait)).toBeLessThan(2n ** 64n)
    })
  })

  it('parseRetryAfter never rounds seconds down', () => {
    forAll([fc.nat(), fc.nat({ max: 999_999 })], {}, (whole, fraction) => {
      const text = `${whole}.${fraction}`
      expect(parseRetryAfter(text, now)).toBeGreaterThanOrEqual(Number(text) * 1000)
    })
  })

  it('parseRetryAfter returns the time until a date', () => {
    forAll([fc.integer({ min: 0, max: 4_000_000_000 }), fc.nat({ max: 100_000_000 })], {}, (second, ahead) => {
      const date = new Date((second + ahead) * 1000).toUTCString()
      expect(parseRetryAfter(date, second * 1000)).toBe(ahead * 1000)
    })
  })
})
