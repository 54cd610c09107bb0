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
  ])('linkify finds the links in the text: %s', (text, expected) => {
    expect(links(text)).toEqual(expected)
  })

  it('linkify splits random texts into parts that together equal the text, and returns only http and https links', () => {
    const pieces = fc.constantFrom(
      'https://',
      'http://',
      'javascript:',
      'a.example',
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
        for (const href of links(text)) expect(['http:', 'https:']).toContain(new URL(href).protocol)
      }),
    )
  })
})

it('safeHref returns undefined if a URL is invalid or neither http nor https', () => {
  expect(safeHref('javascript:alert(1)')).toBeUndefined()
  expect(safeHref('not a url')).toBeUndefined()
  expect(safeHref('https://example.com/logo.png')).toBe('https://example.com/logo.png')
})
