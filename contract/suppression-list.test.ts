import fc from 'fast-check'
import { expect, it } from 'vitest'
import { forAll } from '../test/support/for-all.ts'
import { someOf } from '../test/support/is-long.ts'
import { readSuppressionList } from './suppression-list.ts'

const read = (content: string) => {
  const { entries, invalid, repeated, ignored } = readSuppressionList(content)
  return {
    entries: entries.map(({ line, kind, value }) => `${line} ${kind} ${value}`),
    invalid: invalid.map(({ line, text }) => `${line} ${text}`),
    repeated,
    ignored,
  }
}
const nothing = { entries: [], invalid: [], repeated: 0, ignored: [] }

it('readSuppressionList reads one address, number or subject per line, and skips empty lines and comments', () => {
  expect(read('\uFEFF# asked us, by phone\r\nAda@Example.com\r\n\r\n +43 660 123-45 \rsubject:a,b "c"; d\n')).toEqual({
    ...nothing,
    entries: ['2 email Ada@Example.com', '4 phone +43 660 123-45', '5 subject a,b "c"; d'],
  })
})

it('readSuppressionList names the lines that contain no entry', () => {
  expect(read('Ada Lovelace\n4.3664E+11\n=1+1\nada@localhost\n,\n12\nsubject:\nada@example.com\nx\u0000')).toEqual({
    ...nothing,
    entries: ['8 email ada@example.com'],
    invalid: ['1 Ada Lovelace', '2 4.3664E+11', '3 =1+1', '4 ada@localhost', '6 12', '7 subject:', '9 x\u0000'],
  })
})

it('readSuppressionList counts repeated entries, also if they are written differently', () => {
  expect(read('ADA@example.com\nada@example.com\n+43 1 234\n0043/1/234\n٠٠٤٣١٢٣٤\nsubject:A\nsubject:a')).toMatchObject(
    {
      entries: ['1 email ADA@example.com', '3 phone +43 1 234', '6 subject A', '7 subject a'],
      repeated: 3,
    },
  )
})

it('readSuppressionList reads the e-mail and phone columns of a header, and reports other columns as ignored', () => {
  const rows = 'E-Mail;Name;Phone number\nada@example.com;"Lovelace; Ada";+43 1 234\n;Grace;\nbob@example.com;;none\n'
  expect(read(rows)).toEqual({
    entries: ['2 email ada@example.com', '2 phone +43 1 234', '4 email bob@example.com'],
    invalid: ['3 , Grace, ', '4 none'],
    repeated: 0,
    ignored: ['Name'],
  })
})

it('readSuppressionList reads only the first column if there is no header', () => {
  expect(read('ada@example.com,Ada,\nbob@example.com,Bob,1990')).toMatchObject({
    entries: ['1 email ada@example.com', '2 email bob@example.com'],
    ignored: ['column 2', 'column 3'],
  })
})

it('readSuppressionList reads quoted cells that contain separators, quotes and line breaks', () => {
  expect(
    read('email,note,subject\r\n"ada@example.com","said ""no""\r\n, twice","x ""1"""\n bob@example.com ,,'),
  ).toEqual({
    ...nothing,
    entries: ['2 email ada@example.com', '2 subject x "1"', '4 email bob@example.com'],
    ignored: ['note'],
  })
})

it('readSuppressionList reports only the line as invalid if a quote is never closed, and reads the other lines', () => {
  expect(read('"ada@example.com\nbob@example.com\n"eve@example.com')).toEqual({
    ...nothing,
    entries: ['2 email bob@example.com'],
    invalid: ['1 "ada@example.com', '3 "eve@example.com'],
  })
})

it('readSuppressionList does not treat a line with `constructor` and `__proto__` as a header', () => {
  expect(read('constructor,__proto__\n')).toEqual({ ...nothing, invalid: ['1 constructor'], ignored: ['column 2'] })
})

it.each(
  someOf(
    [
      ['one long line', 'x'.repeat(1e6)],
      ['one long line of separators', ','.repeat(1e6)],
      ['one long line of quotes', '"'.repeat(1e6 + 1)],
      ['many open quotes', '"x\n'.repeat(3e5)],
      ['many long addresses', `${'a'.repeat(1e5)}@${'b.'.repeat(1e5)}\n`.repeat(3)],
      ['many short lines', 'a@b.c\n'.repeat(2e5)],
    ],
    1,
  ),
)('reads hostile input in linear time and shows little of it: %s', (_, content) => {
  const started = performance.now()
  const { entries, invalid } = readSuppressionList(content)
  expect(performance.now() - started).toBeLessThan(60_000)
  expect(entries.length).toBeLessThan(2)
  expect(invalid.filter(({ text }) => text.length > 161)).toEqual([])
})

it('readSuppressionList returns each quoted entry of a CSV file, whatever the other cells contain', () => {
  const entry = fc.constantFrom('ada@example.com', '+43 1 234 567', 'straße@bücher.example', '0660/123')
  const note = fc.string({ unit: fc.constantFrom('a', '"', ',', ';', '\n', ' ', '#', '=') })
  forAll([fc.array(fc.tuple(entry, note), { minLength: 1, maxLength: 8 })], {}, (rows) => {
    const quoted = rows.map(([value, text]) => `"${value}","${text.replaceAll('"', '""')}"`)
    const { entries, invalid, repeated } = readSuppressionList(quoted.join('\n'))
    expect(invalid).toEqual([])
    expect(entries.map(({ value }) => value)).toEqual([...new Set(rows.map(([value]) => value))])
    expect(entries.length + repeated).toBe(rows.length)
  })
})

it('readSuppressionList never throws and returns no line number beyond the last line, for any text', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '@', '.', '"', ',', ';', '\t', '\n', '\r', '1', '+', '#') }),
      (text) => {
        const { entries, invalid } = readSuppressionList(text)
        const lines = text.split(/\r\n?|\n/).length
        for (const { line } of [...entries, ...invalid]) expect(line).toBeLessThanOrEqual(lines)
      },
    ),
  )
})
