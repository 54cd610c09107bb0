import fc from 'fast-check'

/**
 * Returns the token with one other letter near its end. The last letter of base64url may have unused bits, and
 * a fixed letter may be the one that the token already has.
 */
export const damaged = (token: string) => token.replace(/.(?=.{4}$)/, (letter) => (letter === 'A' ? 'B' : 'A'))

/**
 * Any character: a code point that is no surrogate. The unit `binary` of fast-check is the same, but each
 * process needs 1.7 s to build it.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10f7ff })
  .map((index) => String.fromCodePoint(index < 0xd800 ? index : index + 0x800))

/** Texts that are known to break parsers, queries, logs or pages. */
export const nastyTexts: readonly string[] = [
  '',
  ' ',
  '\0',
  '\r\nSet-Cookie: a=b',
  '\n\nevent: session.revoked\ndata: {}\n\n',
  '\u2028\u2029\u0085',
  '\ud800',
  '\udfff\ud800',
  '\ufeff',
  '\u202e',
  '💥'.repeat(64),
  'e\u0301'.repeat(64),
  '__proto__',
  'constructor',
  'toString',
  '$where',
  '{"$gt":""}',
  '../../../../etc/passwd',
  '%2e%2e%2f%00',
  "'; DROP TABLE events; --",
  '<script>alert(1)</script>',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text is an attack string
  '${jndi:ldap://127.0.0.1/a}',
  '-1',
  '1e999',
  'NaN',
  '0x10',
  'true',
  'null',
  'undefined',
  'javascript:alert(1)',
  'file:///etc/passwd',
  'http://[::1]:27017/',
  'http://a:b@shop.example/',
  'https://shop.example\\@evil.example/',
  'ses_00000000000000000000000000',
  '9'.repeat(400),
  'a'.repeat(129),
  'a'.repeat(70_000),
  `${'a'.repeat(50_000)}!`,
]

/** Values of the wrong type, the wrong size or the wrong depth. */
export const nastyValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  0.5,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  2 ** 64,
  [],
  [[]],
  [null],
  {},
  { $gt: '' },
  { $where: 'sleep(1000)' },
  { toString: 1 },
  { constructor: { prototype: { polluted: true } } },
  JSON.parse('{"__proto__":{"polluted":true}}'),
  Array.from({ length: 5000 }, () => 0),
  Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`key${index}`, index])),
  nested(2000),
]

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

export const nastyText = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...nastyTexts) },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 64 }) },
)

export const nastyValue = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...nastyValues) },
  { weight: 2, arbitrary: nastyText },
  { weight: 1, arbitrary: fc.jsonValue() },
)

/** Bodies that are invalid JSON, or JSON that is expensive to parse. */
export const nastyBodies: readonly Buffer[] = [
  '',
  '{',
  '}',
  '[',
  'null',
  '"',
  '{}{}',
  '{"a":1,}',
  '\ufeff{}',
  "{'a':1}",
  '{"a":NaN}',
  '{"a":1e99999}',
  '{"a":-0}',
  '{"a":"\\ud800"}',
  '{"__proto__":{"a":1}}',
  '{"constructor":{"prototype":{"a":1}}}',
  '{"body":"a","body":"b"}',
  '['.repeat(30_000),
  `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  `${'{"a":'.repeat(8_000)}1${'}'.repeat(8_000)}`,
  `{"a":"${'\\u0000'.repeat(8_000)}"}`,
  `{"a":${'9'.repeat(50_000)}}`,
  `{${Array.from({ length: 4000 }, (_, index) => `"k${index}":0`).join()}}`,
  'a'.repeat(300_000),
  `{"body":"${'a'.repeat(300_000)}"}`,
  `[${'1,'.repeat(100_000)}1]`,
  `{"fields":{"email":"${'a'.repeat(100_000)}"}}`,
]
  .map((text) => Buffer.from(text))
  .concat([
    Buffer.from([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]),
    Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc3, 0x28, 0x22, 0x7d]),
    Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
    Buffer.from([0x22, 0xc0, 0x80, 0x22]),
    Buffer.alloc(1000, 0),
  ])
