import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../test/support/for-all.ts'
import { anyCharacter, nastyTexts } from '../test/support/nasty-values.ts'
import { repairLine, repairLocale } from './repairs.ts'

/** Generates any text, including lone surrogates, control characters, emoji and known problem texts. */
const anyText = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.constantFrom(...nastyTexts),
  fc.string({ unit: 'grapheme' }),
)

describe('repairLine', () => {
  it.each([
    ['a C1 control character', 'Lamps\u0085 and\u009c more', 'Lamps and more'],
    ['line breaks and tabs', '\tLamps\r\n', 'Lamps'],
    ['NUL and DEL', 'La\0mps\u007f', 'Lamps'],
    ['lone surrogates', '\udc00La\ud83dmps\ud800', 'Lamps'],
    ['half an emoji at the limit', `${'x'.repeat(9)}😀`.slice(0, 10), 'x'.repeat(9)],
    ['more code points than the limit', '😀'.repeat(11), '😀'.repeat(10)],
    ['line separators and accents without a change', 'e\u0301 \u2028', 'e\u0301 \u2028'],
  ])('repairs text with %s', (_, sent, kept) => {
    expect(repairLine(sent, 10 + 10 * Number(sent.startsWith('Lamps')))).toBe(kept)
  })

  it('returns valid text for any text, and a second run changes nothing', () => {
    forAll([anyText, fc.integer({ min: 0, max: 40 })], {}, (sent, maxCodePoints) => {
      const kept = repairLine(sent, maxCodePoints)
      expect(kept.isWellFormed()).toBe(true)
      expect(kept).not.toMatch(/\p{Cc}/u)
      expect([...kept].length).toBeLessThanOrEqual(maxCodePoints)
      expect(repairLine(kept, maxCodePoints)).toBe(kept)
    })
  })
})

describe('repairLocale', () => {
  it.each([
    ['de_DE', 'de-DE'],
    ['de-DE', 'de-DE'],
    ['zh_Hant_TW', 'zh-Hant-TW'],
    ['en-us', 'en-US'],
    ['en_US.UTF-8', 'en-US'],
    ['en-US@posix', 'en-US'],
    [' gsw\u0085-CH\n', 'gsw-CH'],
    ['', undefined],
    ['C', undefined],
    ['de-', undefined],
    ['deutsch, bitte', undefined],
    ['*', undefined],
    [`en-x-${'abcdefgh-'.repeat(4)}a`, undefined],
  ])('turns %j into %j', (sent, kept) => {
    expect(repairLocale(sent)).toBe(kept)
  })

  it('returns a valid tag or nothing for any text', () => {
    forAll([anyText], {}, (sent) => {
      const kept = repairLocale(sent)
      if (kept === undefined) return
      expect(Intl.getCanonicalLocales(kept)).toEqual([kept])
      expect(kept.length).toBeLessThanOrEqual(35)
      expect(repairLocale(kept)).toBe(kept)
    })
  })
})
