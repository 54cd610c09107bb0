import { expect, it } from 'vitest'
import { readEntries } from './suppressions.ts'

it('readEntries reads subjects, addresses and numbers, and skips empty lines and comments', () => {
  expect(readEntries('# asked us\nsubject:customer-17\r\n\nAda@example.com\n +43 660 123\n')).toEqual([
    { of: { case: 'subject', value: 'customer-17' } },
    { of: { case: 'email', value: 'Ada@example.com' } },
    { of: { case: 'phone', value: '+43 660 123' } },
  ])
})

it('readEntries names the lines that are neither subject, address nor number', () => {
  expect(() => readEntries('ada@example.com\nAda Lovelace\n+43 1 234\nx')).toThrow(
    'neither subject, address nor number: line 2, 4',
  )
})

it('readEntries reads the named columns of a CSV file, and refuses several columns without a header', () => {
  expect(readEntries('Name;E-mail\nAda;ada@example.com\n')).toEqual([
    { of: { case: 'email', value: 'ada@example.com' } },
  ])
  expect(() => readEntries('ada@example.com,+43 1 234')).toThrow(/name them in its first line/)
})
