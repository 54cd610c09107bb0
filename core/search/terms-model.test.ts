import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { itLong, runs } from '../../test/support/is-long.ts'
import { hasTerms, searchTermsOf, snippetOf, termsOf } from './terms-model.ts'

const finds = (query: string, text: string) => hasTerms(text, searchTermsOf(query))

describe('a query', () => {
  it.each([
    ['cafe', 'Un CAFÉ, please'],
    ['CAFÉ', 'a cafe'],
    ['strasse', 'Hauptstraße 5, Straße'],
    ['straße', 'STRASSE'],
    ['istanbul', 'İSTANBUL'],
    ['lodz', 'z Łodzi: Łódź'],
    ['κόσμος', 'ΚΌΣΜΟΣ'],
    ['ref', 'a refund'],
    ['refund graz', 'Graz: where is my refund?'],
    ['anna@example.com', 'write to Anna@Example.COM.'],
    ['東京', '私は東京に住んでいます'],
    ['京', '東京'],
    ['住んで', '東京に住んでいます'],
    ['ﬁnance', 'FINANCE'],
    ['한국', '한국어'],
    ['⑴', 'point ⑴.'],
    ['1½', '1½ kg'],
    ['456', 'order ٤٥٦'],
    ['٤٥٦', 'order 456'],
    ['0664 1234567', '+436641234567'],
    ['+43 664 123', '+436641234567'],
    ['٠٦٦٤ ١٢٣٤٥٦٧', '+436641234567'],
    ['0043 664 1234567', 'call +43 (0)664 1234567.'],
    ['+966501234567', '٩٦٦ ٥٠ ١٢٣ ٤٥٦٧'],
    ['0664 1234567 ', '0664/1234567 10 am'],
    ['664 1234567', 'call 664 1234567'],
    ['2026-11-29', 'on 2026-11-29'],
  ])('%s finds the text %s', (query, text) => {
    expect(finds(query, text)).toBe(true)
  })

  it.each([
    ['ref ', 'a refund'],
    ['ref a', 'a refund'],
    ['refund vienna', 'Graz: where is my refund?'],
    ['東北', '東京'],
    ['und', 'refund'],
  ])('“%s” does not find the text %s', (query, text) => {
    expect(finds(query, text)).toBe(false)
  })

  it('has no terms if it contains no letter or digit', () => {
    expect(searchTermsOf(' -- 🙂 .*$ ')).toEqual([])
  })

  it('finds every text that begins with it', () => {
    forAll([fc.string({ unit: 'grapheme', maxLength: 60 })], runs(2000), (text) => {
      const words = text.split(' ')
      const query = words.slice(0, 3).join(' ')
      expect(searchTermsOf(query).length === 0 || finds(query, text)).toBe(true)
    })
  })
})

describe('a term', () => {
  itLong(
    'is a pair of letters in a script without spaces; 300,000 letters are divided within seconds',
    () => {
      const letters = 300_000
      expect(termsOf('行'.repeat(letters))).toHaveLength(letters)
    },
    20_000,
  )

  it('has only letters and digits for any text, so that it needs no escaping in a regular expression', () => {
    forAll([fc.string({ unit: fc.oneof(fc.constantFrom('⑴', 'ﷺ', '½', '㈎'), fc.string()) })], runs(2000), (text) => {
      for (const { term } of termsOf(text)) expect(term).toMatch(/^[\p{L}\p{N}]+$/u)
    })
  })
})

describe('a snippet', () => {
  it('shows the first match with its surroundings and marks the matches', () => {
    const text = `${'before '.repeat(40)}the Refúnd ${'after '.repeat(60)}`
    const { text: snippet, highlights } = snippetOf(text, searchTermsOf('refund'))
    expect(snippet.length).toBeLessThan(170)
    expect(snippet).toMatch(/^….*the Refúnd after.*…$/)
    expect(highlights.map(({ start, end }) => snippet.slice(start, end))).toEqual(['Refúnd'])
  })

  it('splits no surrogate pair and marks words only, for any text and position', () => {
    forAll([fc.array(fc.constantFrom('🙂', 'a', ' ', 'word', '東京', 'é'), { maxLength: 400 })], runs(500), (parts) => {
      const { text, highlights } = snippetOf(parts.join(''), searchTermsOf('word'))
      expect(text.isWellFormed()).toBe(true)
      for (const { start, end } of highlights) expect(text.slice(start, end)).toMatch(/^(word|éword|.*word.*)/u)
    })
  })
})
