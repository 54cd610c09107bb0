import { columns } from './usage.ts'

/** A core's answer for people to read: each field on a line, each thing of a list below the one before. */
export function readable(value: unknown): string {
  const rows = rowsOf(value, '')
  return rows.length === 0 ? '  nothing' : columns(rows)
}

function rowsOf(value: unknown, path: string): string[][] {
  if (Array.isArray(value) && value.some((each) => typeof each === 'object')) {
    return value.flatMap((each, index) => rowsOf(each, `${path}[${index + 1}]`))
  }
  if (Array.isArray(value)) return [[path, value.join(', ')]]
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([name, each]) => rowsOf(each, path === '' ? name : `${path}.${name}`))
  }
  return [[path, String(value)]]
}
