import { emailPartsOf, normalPhone } from './contacts.ts'
import { useLineFeeds } from './line-ends.ts'

export type EntryKind = 'subject' | 'email' | 'phone'

export interface ListEntry {
  line: number
  kind: EntryKind
  value: string
}

/** A list of people who must not be contacted. Lines are numbered from 1. */
export interface SuppressionList {
  entries: ListEntry[]
  /** Lines without a valid entry, and invalid cells of named columns. */
  invalid: { line: number; text: string; kind?: EntryKind }[]
  /** Number of entries that were skipped, because an earlier one is the same. */
  repeated: number
  hasHeader: boolean
  /** The columns that were not read: their names, or their numbers if there is no header. */
  ignored: string[]
}

const maxShown = 80
const maxCell = 400
const subjectPrefix = 'subject:'
const columnNames: [RegExp, EntryKind][] = [
  [/^subject$/i, 'subject'],
  [/^e-?mail( address)?$/i, 'email'],
  [/^(phone( number)?|telephone|mobile)$/i, 'phone'],
]

/**
 * Reads a text or CSV file. A line has an e-mail address, a phone number, or `subject:` and the host's id
 * of a visitor. Without a header, only the first column is read; with one, `email`, `phone` and `subject`.
 * Skips empty lines and those that begin with `#`. The core decides whether a domain is valid.
 */
export function readSuppressionList(content: string): SuppressionList {
  const rows = readRows(content.replace(/^\uFEFF/, ''))
  const header = headerOf(rows[0]?.cells ?? [])
  const list: SuppressionList = { entries: [], invalid: [], repeated: 0, hasHeader: header !== undefined, ignored: [] }
  const known = new Set<string>()

  function read(line: number, text: string, kind?: EntryKind) {
    const entry = entryOf(text, kind)
    if (!entry) return void list.invalid.push({ line, text: shortened(text), ...(kind && { kind }) })
    const key = `${entry.kind} ${entry.normal}`
    if (known.has(key)) list.repeated += 1
    else list.entries.push({ line, kind: entry.kind, value: entry.value })
    known.add(key)
  }

  if (header) {
    list.ignored = rows[0]!.cells.filter((_, column) => header[column] === undefined).map(shortened)
    for (const { line, cells } of rows.slice(1)) {
      const counted = cells.flatMap((text, column) =>
        header[column] && text !== '' ? [{ text, kind: header[column] }] : [],
      )
      if (counted.length === 0) list.invalid.push({ line, text: shortened(cells.join(', ')) })
      for (const { text, kind } of counted) read(line, text, kind)
    }
    return list
  }
  let columns = 1
  for (const { line, cells } of rows) {
    columns = Math.max(columns, cells.findLastIndex((text) => text !== '') + 1)
    read(line, cells[0]!)
  }
  list.ignored = Array.from({ length: columns - 1 }, (_, index) => `column ${index + 2}`)
  return list
}

/** Returns the kind of each column if the record is a header. */
function headerOf(cells: string[]) {
  const kinds = cells.map((name) => columnNames.find(([pattern]) => pattern.test(name))?.[1])
  return kinds.some((kind) => kind !== undefined) ? kinds : undefined
}

function entryOf(text: string, kind?: EntryKind): { kind: EntryKind; value: string; normal: string } | undefined {
  if (kind === 'subject' || (!kind && text.startsWith(subjectPrefix))) {
    const value = kind ? text : text.slice(subjectPrefix.length)
    const isValid = value !== '' && [...value].length <= 256 && !/\p{Cc}/u.test(value)
    return isValid ? { kind: 'subject', value, normal: value } : undefined
  }
  if (text.length > maxCell) return undefined
  const email = kind === 'phone' ? undefined : emailPartsOf(text)
  if (email) return { kind: 'email', value: text, normal: `${email.name}@${email.domain}` }
  const phone = kind === 'email' ? undefined : normalPhone(text)
  return phone === undefined ? undefined : { kind: 'phone', value: text, normal: phone }
}

/** Splits a text into rows and cells, as in RFC 4180. Trims the cells, and leaves out rows without content. */
function readRows(content: string) {
  const text = useLineFeeds(content)
  const rows: { line: number; cells: string[] }[] = []
  let cell: RegExp | undefined
  let line = 1
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf('\n', at)
    const lineEnd = newline === -1 ? text.length : newline
    const whole = text.slice(at, lineEnd).trim()
    const isWhole = whole === '' || whole.startsWith('#') || whole.startsWith(subjectPrefix)
    if (!isWhole) cell ??= cellFormOf(text, at)
    const { cells, next } = isWhole ? { cells: [whole], next: lineEnd + 1 } : readRow(text, at, cell!)
    if (!whole.startsWith('#') && cells.some((cell) => cell !== '')) rows.push({ line, cells })
    line += text.slice(at, next).split('\n').length - 1
    at = next
  }
  return rows
}

/** Returns the form of a cell, with the separator that follows the first one. */
function cellFormOf(text: string, start: number) {
  const first = /(?:"[^"]*(?:""[^"]*)*"(?!"))?[^,;\t\n]*([,;\t]?)/y
  first.lastIndex = start
  const separator = first.exec(text)![1] || ','
  // If text follows the closing quote, the quotes are part of the cell's text.
  return new RegExp(` *"([^"]*(?:""[^"]*)*)"(?!")[^\\S\n${separator}]*(?![^\n${separator}])|[^\n${separator}]*`, 'y')
}

function readRow(text: string, start: number, cell: RegExp): { cells: string[]; next: number } {
  const cells: string[] = []
  cell.lastIndex = start
  for (;;) {
    const [all, quoted] = cell.exec(text)!
    cells.push((quoted?.replaceAll('""', '"') ?? all).trim())
    const end = text[cell.lastIndex]
    cell.lastIndex += 1
    if (end === undefined || end === '\n') return { cells, next: cell.lastIndex }
  }
}

function shortened(text: string) {
  const points = [...text.slice(0, 2 * maxShown)]
  return points.length > maxShown ? `${points.slice(0, maxShown).join('')}…` : text
}
