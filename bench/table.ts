/** One figure, with its value in each round. */
export interface Cell {
  values: number[]
  unit: string
  digits?: number
  /** Text that is shown if there are no values. */
  missing?: string
}

export interface Table {
  title: string
  columns: string[]
  rows: { name: string; cells: Cell[] }[]
  notes: string[]
}

export function median(values: number[]): number {
  return quantile(values, 0.5)
}

/** Returns a quantile by linear interpolation; NaN without values. */
export function quantile(values: number[], fraction: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const place = (sorted.length - 1) * fraction
  const below = sorted[Math.floor(place)] ?? Number.NaN
  const above = sorted[Math.ceil(place)] ?? Number.NaN
  return below + (above - below) * (place - Math.floor(place))
}

/** Returns the median, with minimum and maximum of several rounds. */
export function cellText({ values, unit, digits = 0, missing }: Cell): string {
  if (values.length === 0) return missing ?? 'not measured'
  const number = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  const middle = `${number(median(values))}${unit && ` ${unit}`}`
  const spread = values.length > 1 ? ` (${number(Math.min(...values))} to ${number(Math.max(...values))})` : ''
  return `${middle}${spread}${missing ? `, ${missing}` : ''}`
}

export function markdownTable({ title, columns, rows, notes }: Table): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [
    `### ${title}`,
    '',
    line(columns),
    line(columns.map(() => '---')),
    ...rows.map(({ name, cells }) => line([name, ...cells.map(cellText)])),
    '',
    ...notes.map((note) => `${note}\n`),
  ].join('\n')
}

export function plainTable({ title, columns, rows, notes }: Table): string {
  const lines = [columns, ...rows.map(({ name, cells }) => [name, ...cells.map(cellText)])]
  const widths = columns.map((_, index) => Math.max(...lines.map((cells) => cells[index]?.length ?? 0)))
  const padded = lines.map((cells) => cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  '))
  return [`\n${title}`, ...padded.map((text) => text.trimEnd()), ...notes].join('\n')
}
