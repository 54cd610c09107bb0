import { domainToASCII } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
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
    ['见https://a.example。谢谢', ['https://a.example/']],
    ['https://a.example見て、https://a.example를', ['https://a.example/', 'https://a.example/']],
    ['「https://a.example/b」です', ['https://a.example/b']],
    ['https://a.example/电影（一）', ['https://a.example/%E7%94%B5%E5%BD%B1%EF%BC%88%E4%B8%80%EF%BC%89']],
    ['https://例え.テスト/', ['https://xn--r8jz45g.xn--zckzah/']],
    [
      'http://localhost:3000/x http://[::1]:81/a https://a.example:',
      ['http://localhost:3000/x', 'http://[::1]:81/a', 'https://a.example/'],
    ],
    ['写信给ada@example.com，或ada@sub.müller.de', ['mailto:ada@example.com', 'mailto:ada@sub.müller.de']],
    ['éa@example.com ada@example.com으로', ['mailto:ada@example.com']],
    ['https://bank。example/ https://ｂank.example/ https://a.b\u00adc.example https://a.b%2ec/', []],
  ])('linkify finds the links in the text: %s', (text, expected) => {
    expect(links(text)).toEqual(expected)
  })

  it.each(['https://a.example', 'https://a.example/b', 'www.a.example', 'ada@a.example'])(
    'linkify keeps punctuation of every script, and what follows it, out of %s',
    (address) => {
      const punctuation = Array.from({ length: 0x1ffff }, (_, code) => String.fromCodePoint(code)).filter((sign) =>
        /(?![\0-\x7f])\p{P}/u.test(sign),
      )
      expect(punctuation.length).toBeGreaterThan(700)
      for (const sign of punctuation) {
        expect(linkify(`${sign}${address}${sign}`).filter(({ href }) => href)).toMatchObject([{ text: address }])
        if (address.endsWith('/b')) continue
        const [link] = linkify(`${address}${sign}字b.example`).filter(({ href }) => href)
        expect([sign, link?.text]).toEqual([sign, address])
      }
    },
  )

  it('linkify never returns a link to a host that differs from the text', () => {
    const sign = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
      fc.constantFrom('。', '．', '／', '\u00ad', '\u200d', '％', '%2e', '＠', '\\', 'ｂ', 'ß', 'İ'),
    )
    fc.assert(
      fc.property(
        fc.array(fc.oneof(sign, fc.constantFrom('a', 'b', '.', '例', 'é', '/')), { maxLength: 12 }),
        (signs) => {
          for (const { text, href } of linkify(`https://a.${signs.join('')}`)) {
            if (!href) continue
            const shown = /^https:\/\/([^/\\?#:]*)/.exec(text)![1]!
            const same = shown.normalize('NFKC') === shown.normalize('NFC') && /^[\p{L}\p{M}\p{N}._-]+$/u.test(shown)
            expect([text, same, new URL(href).hostname]).toEqual([text, true, domainToASCII(shown)])
          }
        },
      ),
      runs(20_000),
    )
  })

  it.each([
    ['dots and brackets', (size: number) => `http://a${'.'.repeat(size)}${')'.repeat(size / 2)}`],
    ['dots before a letter', (size: number) => `http://a${'.'.repeat(size)}b`],
    ['brackets of both kinds', (size: number) => `http://a${'('.repeat(size)}${').'.repeat(size)}`],
    ['links without an end', (size: number) => 'http://'.repeat(size)],
    ['links without spaces', (size: number) => 'http://a.example。'.repeat(size / 20)],
    ['open brackets', (size: number) => `http://a.example/${'（'.repeat(size)}`],
    ['quoted links', (size: number) => '「http://a.example/」'.repeat(size / 20)],
    ['links', (size: number) => 'http://a.example) '.repeat(size / 8)],
    ['user names', (size: number) => `http://${'a@'.repeat(size)}`],
  ])('linkify takes a time in proportion to the length of %s', (_, textOf) => {
    const timeOf = (size: number) => {
      const text = textOf(size)
      const times = Array.from({ length: 3 }, () => {
        const began = process.threadCpuUsage()
        linkify(text)
        const { user, system } = process.threadCpuUsage(began)
        return (user + system) / 1000
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
    forAll([fc.array(pieces, { maxLength: 30 })], {}, (parts) => {
      const text = parts.join('')
      expect(
        linkify(text)
          .map((part) => part.text)
          .join(''),
      ).toBe(text)
      for (const href of links(text)) expect(['http:', 'https:', 'mailto:', 'tel:']).toContain(new URL(href).protocol)
    })
  })
})

it('safeHref returns undefined if a URL is invalid or neither http nor https', () => {
  expect(safeHref('javascript:alert(1)')).toBeUndefined()
  expect(safeHref('not a url')).toBeUndefined()
  expect(safeHref('https://example.com/logo.png')).toBe('https://example.com/logo.png')
})
