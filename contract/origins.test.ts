import { describe, expect, it } from 'vitest'
import { entriesAllowing, isOriginAllowed, isOriginEntry } from './origins.ts'

describe('origins', () => {
  it.each([
    ['https://shop.example', true],
    ['http://localhost:8081', true],
    ['https://*.example.com', true],
    ['https://*.example.com:8443', true],
    ['https://shop.example/', false],
    ['https://shop.example:443', false],
    ['https://SHOP.example', false],
    ['https://user@shop.example', false],
    ['http://*.example.com', false],
    ['https://*.com', false],
    ['https://*', false],
    ['https://shop.*.com', false],
    ['ftp://shop.example', false],
    ['null', false],
    ['*', false],
    ['https://.shop.example', false],
    ['https://shop..example', false],
    ['https://shop.example.', false],
    ['https://*..example.com', false],
    ['https://*.example.com.', false],
    ['https://*.user@example.com', false],
    ['https://*.EXAMPLE.com', false],
    ['https://*.bücher.example', false],
    ['https://*.xn--bcher-kva.example', true],
    ['', false],
  ])('isOriginEntry returns for the entry "%s": %s', (entry, expected) => {
    expect(isOriginEntry(entry)).toBe(expected)
  })

  it.each([
    ['https://shop.example', ['https://shop.example'], true],
    ['http://shop.example', ['https://shop.example'], false],
    ['https://shop.example:8443', ['https://shop.example'], false],
    ['https://shop.example.evil.test', ['https://shop.example'], false],
    ['https://a.example.com', ['https://*.example.com'], true],
    ['https://a.b.example.com', ['https://*.example.com'], true],
    ['https://example.com', ['https://*.example.com'], false],
    ['https://badexample.com', ['https://*.example.com'], false],
    ['http://a.example.com', ['https://*.example.com'], false],
    ['https://a.example.com:8443', ['https://*.example.com'], false],
    ['https://a.example.com:8443', ['https://*.example.com:8443'], true],
    ['null', ['null'], false],
    ['https://*.example.com', ['https://*.example.com'], false],
    ['https://.wild.example', ['https://*.wild.example'], false],
    ['https://..wild.example', ['https://*.wild.example'], false],
    ['https://a..wild.example', ['https://*.wild.example'], false],
    ['https://.a.wild.example', ['https://*.wild.example'], false],
    ['https://a.wild.example.', ['https://*.wild.example'], false],
    ['https://a.wild..example', ['https://*.wild.example'], false],
    ['https://a.wild.example:', ['https://*.wild.example'], false],
    ['https://a.wild.example:443', ['https://*.wild.example'], false],
    ['https://a.wild.example:0', ['https://*.wild.example'], false],
    ['https://a.wild.example:99999', ['https://*.wild.example'], false],
    ['https://A.wild.example', ['https://*.wild.example'], false],
    ['HTTPS://a.wild.example', ['https://*.wild.example'], false],
    ['https://ü.wild.example', ['https://*.wild.example'], false],
    ['https://xn--tda.wild.example', ['https://*.wild.example'], true],
    ['https://a_b.wild.example', ['https://*.wild.example'], true],
    ["https://a'b.wild.example", ['https://*.wild.example'], false],
    ['https://a%2e.wild.example', ['https://*.wild.example'], false],
    ['https://evil.test@a.wild.example', ['https://*.wild.example'], false],
    ['https://a.wild.example@evil.test', ['https://*.wild.example'], false],
    ['https://a.wild.example/', ['https://*.wild.example'], false],
    ['https://a.wild.example?', ['https://*.wild.example'], false],
    ['https://a.wild.example#.evil.test', ['https://*.wild.example'], false],
    ['https:a.wild.example', ['https://*.wild.example'], false],
    ['https://a.wild.example\n', ['https://*.wild.example'], false],
    [' https://a.wild.example', ['https://*.wild.example'], false],
    ['https://a\u3002wild.example', ['https://*.wild.example'], false],
    ['https://[::1]', ['https://[::1]'], true],
    ['https://shop.example.', ['https://shop.example.'], false],
    ['', [''], false],
  ])('isOriginAllowed returns for the origin "%s" and the entries %j: %s', (origin, entries, expected) => {
    expect(isOriginAllowed(origin, entries)).toBe(expected)
  })

  it('entriesAllowing lists every entry that allows an origin, and no entry for a URL that is not a web page', () => {
    expect(entriesAllowing('https://a.b.example.com')).toEqual([
      'https://a.b.example.com',
      'https://*.b.example.com',
      'https://*.example.com',
      'https://*.com',
    ])
    expect(entriesAllowing('file:///etc/passwd')).toEqual([])
  })
})
