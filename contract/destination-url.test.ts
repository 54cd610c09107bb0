import { describe, expect, it } from 'vitest'
import { parseDestinationUrl } from './destination-url.ts'

describe('parseDestinationUrl', () => {
  it.each([
    ['https://crm.example/hooks/leads?team=7', 'https://crm.example/hooks/leads?team=7'],
    ['http://crm.example', 'http://crm.example/'],
    ['HTTPS://CRM.Example:8443/', 'https://crm.example:8443/'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
    ['http://receiver:9000/', 'http://receiver:9000/'],
    ['http://[2a00::1]:81/', 'http://[2a00::1]:81/'],
    ['https://crm.example/a@b', 'https://crm.example/a@b'],
    // These URLs are accepted here. The resolver later checks their addresses.
    ['http://0177.0.0.1/', 'http://127.0.0.1/'],
    ['http://2130706433/', 'http://127.0.0.1/'],
  ])('parseDestinationUrl parses %s as %s', (text, href) => {
    expect(parseDestinationUrl(text)?.href).toBe(href)
  })

  it.each([
    '',
    'crm.example/hooks',
    '//crm.example',
    'ftp://crm.example/',
    'xhttps://crm.example/',
    'https-x://crm.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'gopher://127.0.0.1:25/',
    'https://user@crm.example/',
    'https://user:secret@crm.example/',
    'https://:secret@crm.example/',
    'https://crm.example/#part',
    'https://crm.example/#',
    'https://crm.example:0/',
    'https://crm.example:65536/',
    'https://',
    'https:///',
    'http://[::1',
    'http://[fe80::1%25eth0]/',
    'http://425.510.425.510/',
    'http://256.1.1.1/',
    'https://crm.example\\@127.0.0.1/',
    ' https://crm.example/',
    'https://crm.example/a b',
    'https://crm.exa\nmple/',
    'https://crm.example/\u0000',
    `https://crm.example/${'a'.repeat(2048)}`,
  ])('parseDestinationUrl rejects %j', (text) => {
    expect(parseDestinationUrl(text)).toBeUndefined()
  })

  it('parseDestinationUrl accepts at most 2,048 characters', () => {
    const url = `https://crm.example/${'a'.repeat(2028)}`
    expect([url.length, parseDestinationUrl(url)?.href]).toEqual([2048, url])
    expect(parseDestinationUrl(`${url}a`)).toBeUndefined()
  })
})
