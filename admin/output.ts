import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'

export function formatValue(value: unknown): string {
  const rows = rowsOf(value, '')
  return rows.length === 0 ? '  nothing' : columns(rows)
}

export function pageRows(rows: string[][], nextPageToken = ''): string[][] {
  if (rows.length === 0) return [['nothing']]
  return nextPageToken === '' ? rows : [...rows, ['more with', `--page ${nextPageToken}`]]
}

const isEmptyList = (value: unknown) => Array.isArray(value) && value.length === 0

function rowsOf(value: unknown, path: string): string[][] {
  if (Array.isArray(value) && value.some((each) => typeof each === 'object')) {
    return value.flatMap((each, index) => rowsOf(each, `${path}[${index + 1}]`))
  }
  if (Array.isArray(value)) return [[path, value.join(', ')]]
  if (typeof value === 'object' && value !== null) {
    const known = Object.entries(value).filter(([, each]) => each !== undefined && each !== '' && !isEmptyList(each))
    return known.flatMap(([name, each]) => rowsOf(each, path === '' ? name : `${path}.${name}`))
  }
  return [[path, String(value)]]
}

export function columns(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  return rows
    .map((row) => `  ${row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  ')}`.trimEnd())
    .join('\n')
}

export const timeText = (time: Timestamp | undefined): string =>
  time === undefined ? 'an unknown time' : timestampDate(time).toISOString()
