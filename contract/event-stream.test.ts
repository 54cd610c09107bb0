import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../test/support/for-all.ts'
import { encodeStreamedEvent } from './event-stream.ts'

const encoded = (id: string, type: string, json: string) => encodeStreamedEvent({ id, type, json })

describe('encodeStreamedEvent', () => {
  it.each([
    ['7f3a-42', 'message.received', '{"a":"ü"}', 'id: 7f3a-42\nevent: message.received\ndata: {"a":"ü"}\n\n'],
    ['A.b_c-9', 'a', '{\r\n"a":\r1,\n\n}', 'id: A.b_c-9\nevent: a\ndata: { "a": 1, }\n\n'],
    [
      'x'.repeat(128),
      'replay.reset.required',
      '{}',
      `id: ${'x'.repeat(128)}\nevent: replay.reset.required\ndata: {}\n\n`,
    ],
    ['1', 'a.b_c', '{}', 'id: 1\nevent: a.b_c\ndata: {}\n\n'],
    ['', 'message.grew', '{}', 'event: message.grew\ndata: {}\n\n'],
  ])('encodes id %s and type %s', (id, type, json, bytes) => {
    expect(encoded(id, type, json)).toBe(bytes)
  })

  it.each(['x'.repeat(129), 'a b', 'a\nb', 'a\n', '\na', 'a:b', 'ü', '\0'])('returns undefined for the id %j', (id) => {
    expect(encoded(id, 'message.received', '{}')).toBeUndefined()
  })

  it.each(['', 'Message', 'a.', '.a', 'a..b', 'a\n', '\na', 'a b', 'a1', 'a.B', 'a.b ', 'ä'])(
    'returns undefined for the type %j',
    (type) => {
      expect(encoded('1', type, '{}')).toBeUndefined()
    },
  )

  it('encodes any JSON as four lines whose data line has the same JSON value', () => {
    forAll([fc.json(), fc.constantFrom('', '\r', '\n', '\r\n', '\n\nevent: x\n')], {}, (json, end) => {
      const lines = encoded('1', 'a', json + end)!.split(/\r\n|\r|\n/)
      expect(lines).toHaveLength(5)
      expect(lines[2]).toMatch(/^data: /)
      if (!end.includes('event')) expect(JSON.parse(lines[2]!.slice(6))).toEqual(JSON.parse(json))
    })
  })
})
