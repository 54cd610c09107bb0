import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { linkify, safeHref } from './linkify.ts'

const links = (text: string) => linkify(text).flatMap(({ href }) => href ?? [])

describe('linkify', () => {
  it.each([
    ['See https://example.com/a.', ['https://example.com/a']],
    ['(https://example.com/a)', ['https://example.com/a']],
    [
      'https://example.com/wiki/A_(b) and http://b.example?x=1&y=2!',
      ['https://example.com/wiki/A_(b)', 'http://b.example/?x=1&y=2'],
    ],
    ['javascript:alert(1) data:text/html,x vbscript:x ftp://a.example', []],
    ['java\nscript:https//x https:// https:', []],
    ['https://bank.example@evil.example/ https://user:pw@evil.example/', []],
    ['"https://example.com/"onmouseover="x"', ['https://example.com/']],
    ['(see https://example.com/a).), https://example.com/(b).', ['https://example.com/a', 'https://example.com/(b)']],
    ['www.example.com/a, www. and xwww.example.com', ['https://www.example.com/a']],
    ['www.bank.example@evil.example/', ['mailto:www.bank.example@evil.example']],
    ['Write to ada.b+c@shop.example. Not to @ada or a@b', ['mailto:ada.b+c@shop.example']],
    ['Call +43 (1) 234-56 78, order 123456789, 1+1', ['tel:+4312345678']],
    ['https://example.com/?to=ada@shop.example', ['https://example.com/?to=ada@shop.example']],
  ])('linkify finds the links in the text: %s', (text, expected) => {
    expect(links(text)).toEqual(expected)
  })

  it.each([
    ['dots and brackets', (size: number) => `http://a${'.'.repeat(size)}${')'.repeat(size / 2)}`],
    ['dots before a letter', (size: number) => `http://a${'.'.repeat(size)}b`],
    ['brackets of both kinds', (size: number) => `http://a${'('.repeat(size)}${').'.repeat(size)}`],
    ['links without an end', (size: number) => 'http://'.repeat(size)],
    ['links', (size: number) => 'http://a.example) '.repeat(size / 8)],
    ['user names', (size: number) => `http://${'a@'.repeat(size)}`],
  ])('linkify takes a time in proportion to the length of %s', (_, textOf) => {
    const timeOf = (size: number) => {
      const text = textOf(size)
      const times = Array.from({ length: 3 }, () => {
        const began = performance.now()
        linkify(text)
        return performance.now() - began
      })
      return Math.max(1, Math.min(...times))
    }
    // A quadratic algorithm takes 400 times as long for 20 times the length.
    expect(timeOf(20_000) / timeOf(1000)).toBeLessThan(100)
  })

  it('linkify splits random texts into parts that together equal the text, and returns only links of safe kinds', () => {
    const pieces = fc.constantFrom(
      'https://',
      'http://',
      'javascript:',
      'a.example',
      'www.',
      '+1 234 567',
      '/x',
      ' ',
      '@',
      ')',
      '(',
      '.',
      '<b>',
      '🌿',
      '\n',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
        const text = parts.join('')
        expect(
          linkify(text)
            .map((part) => part.text)
            .join(''),
        ).toBe(text)
        for (const href of links(text)) expect(['http:', 'https:', 'mailto:', 'tel:']).toContain(new URL(href).protocol)
      }),
    )
  })
})

it('safeHref returns undefined if a URL is invalid or neither http nor https', () => {
  expect(safeHref('javascript:alert(1)')).toBeUndefined()
  expect(safeHref('not a url')).toBeUndefined()
  expect(safeHref('https://example.com/logo.png')).toBe('https://example.com/logo.png')
})
