import fc from 'fast-check'
import { expect, it } from 'vitest'
import { normalPhone, storedValue } from '../../contract/contacts.ts'
import { forAll } from '../../test/support/for-all.ts'
import { contactsIn, normalEmail } from './contacts.ts'

it.each([
  ['Ada@Example.COM', 'ada@example.com'],
  ['  ada@example.com.  ', 'ada@example.com'],
  ['ada@BÜCHER.example', 'ada@xn--bcher-kva.example'],
  ['ada@xn--bcher-kva.example', 'ada@xn--bcher-kva.example'],
  ['ＡＤＡ＠ｅｘａｍｐｌｅ．ｃｏｍ', 'ada@example.com'],
  ['STRASSE@example.com', 'strasse@example.com'],
  ['straße@example.com', 'strasse@example.com'],
  ['ada@groß.example', 'ada@gross.example'],
  ['ada@xn--gro-7ka.example', 'ada@gross.example'],
  ['jose\u0301@example.com', 'josé@example.com'],
  ['a.d.a+x@example.com', 'a.d.a+x@example.com'],
  ['ada@example\u3002com', 'ada@example.com'],
  ['\u200Bada@exam\u00ADple.com\uFEFF', 'ada@example.com'],
  ['ada@localhost', undefined],
  ['ada', undefined],
  ['a@b@example.com', undefined],
  ['Ada <ada@example.com>', undefined],
  ['<ada@example.com>', undefined],
  ['"ada@example.com', undefined],
  ['mailto:ada@example.com', undefined],
])('normalEmail(%s) returns %s', (text, normal) => expect(normalEmail(text)).toBe(normal))

it.each([
  ['+43 660 123-45 67', '+436601234567'],
  ['0043 (660) 1234567', '+436601234567'],
  ['+43 (0)660 1234567', '+436601234567'],
  ['43660/1234567', '+436601234567'],
  ['٠٠٤٣ ٦٦٠ ١٢٣٤٥٦٧', '+436601234567'],
  ['0660 1234567', '+06601234567'],
  ['\u202A+43 660\u200B 1234567\u202C', '+436601234567'],
  ['(+43) 660 1234567', '+436601234567'],
  ['(+43) (0)660 1234567', '+436601234567'],
  ['tel:+43-660-1234567', '+436601234567'],
  ['Tel.: +43 660 1234567', '+436601234567'],
  ['☎️ +43 660 · 1234567', '+436601234567'],
  ['＋４３（６６０）１２３４５６７', '+436601234567'],
  ['+43\u00a0660\u20111234567', '+436601234567'],
  ['\u202d+43 660 1234567\u202c', '+436601234567'],
  ['12', undefined],
  ['+43 660 CALL', undefined],
  ['1234567890123456', undefined],
  ['', undefined],
])('normalPhone(%s) returns %s', (text, normal) => expect(normalPhone(text)).toBe(normal))

it('normalizing a normal form changes nothing, and upper and lower case give the same normal form', () => {
  forAll([fc.oneof(fc.emailAddress(), fc.string({ unit: 'grapheme', maxLength: 40 }))], {}, (text) => {
    const normal = normalEmail(text)
    if (normal === undefined) return
    expect(normalEmail(normal)).toBe(normal)
    expect(normalEmail(text.toUpperCase())).toBe(normal)
  })
  forAll([fc.stringMatching(/^\+?[0-9 ()/.-]{3,20}$/)], {}, (text) => {
    const normal = normalPhone(text)
    if (normal !== undefined) expect(normalPhone(normal)).toBe(normal)
  })
})

it('contactsIn returns each field that consists of one contact, regardless of its name', () => {
  expect(contactsIn({ a: 'Ada@example.com', b: '+43 1 234 567', c: 'call ada@example.com', d: '' })).toEqual([
    { kind: 'email', value: 'ada@example.com' },
    { kind: 'phone', value: '+431234567' },
  ])
})

it.each([
  ['tel', '+٩٦٦ ٥٠ ١٢٣ ٤٥٦٧', '+966501234567'],
  ['tel', '0043 (0)660 1234567', '+436601234567'],
  ['tel', '０６６０\u200b １２３', '0660 123'],
  ['tel', 'call me', undefined],
  ['email', 'Ada＠example。com\u200b', 'Ada@example.com'],
  ['email', 'ada@example', undefined],
  ['email', 'a\u200cda\u200d@نامه\u200cای\u200c.example', 'ada@نامه\u200cای.example'],
  ['text', 'Ａda\u200d', 'Ａda\u200d'],
])('storedValue(%s, %s) returns %s', (type, text, stored) => {
  expect(storedValue(type, text)).toBe(stored)
  if (stored !== undefined) expect(storedValue(type, stored)).toBe(stored)
})
