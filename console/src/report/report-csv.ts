import type { Report } from '#proto/messaging/v1/messaging_pb.js'

const figures = [
  'name',
  'conversations',
  'answered',
  'medianAnswerSeconds',
  'p90AnswerSeconds',
  'ratings',
  'meanRating',
] as const

/** Beginnings of texts that spreadsheets read as a formula, also as full-width characters. */
const formula = /^[=+\-@\t\r＝＋－＠]/

/** Returns a value as a field of CSV that no spreadsheet runs. */
export function csvField(value: string | number | undefined) {
  if (typeof value !== 'string') return value === undefined ? '' : String(value)
  const harmless = formula.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

export function toCsv({ total, byDay, byHour, byTag }: Report) {
  const groups = { total: total ? [total] : [], day: byDay, hour: byHour, tag: byTag }
  const columns = ['group', ...figures.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))]
  const lines = Object.entries(groups).flatMap(([group, rows]) =>
    rows.map((row) => [group, ...figures.map((name) => row[name])]),
  )
  return [columns, ...lines].map((fields) => `${fields.map(csvField).join(',')}\r\n`).join('')
}
