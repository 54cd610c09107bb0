import type { ReportRow } from '#proto/messaging/v1/messaging_pb.js'

interface ChartProps {
  label: string
  rows: readonly ReportRow[]
  nameOf: (row: ReportRow) => string
  figureOf: (row: ReportRow) => number | undefined
  textOf: (value: number) => string
}

const height = 200
/** Space for the numbers above and the names below the columns. */
const top = 18
const bottom = 24
const room = height - top - bottom
const lineHeight = 40
/** So many names fit below the columns on a phone. */
const maxNames = 7
const maxLines = 12

const titleOf = ({ nameOf, figureOf, textOf }: ChartProps, row: ReportRow) => {
  const value = figureOf(row)
  return `${nameOf(row)}: ${value === undefined ? 'none' : textOf(value)}`
}

/** A chart with one column for each row. Each figure is also in the table below the chart. */
export function ColumnChart(chart: ChartProps) {
  const { label, rows, nameOf, figureOf, textOf } = chart
  const highest = Math.max(...rows.map((row) => figureOf(row) ?? 0))
  const every = Math.ceil(rows.length / maxNames)
  const step = 100 / rows.length
  const isNarrow = rows.length > maxNames
  return (
    <svg class="chart" role="img" aria-label={label} height={height}>
      {[top, top + room / 2].map((y) => (
        <line key={y} class="chart-grid" x1="0" x2="100%" y1={y} y2={y} />
      ))}
      {rows.map((row, index) => {
        const value = figureOf(row) ?? 0
        const size = value > 0 ? Math.max(2, (value / highest) * room) : 0
        const middle = `${(index + 0.5) * step}%`
        const width = `${step * 0.68}%`
        return (
          <g key={row.name}>
            <title>{titleOf(chart, row)}</title>
            <rect class="chart-hit" x={`${index * step}%`} width={`${step}%`} height={height} />
            <rect class="chart-bar" x={`${(index + 0.16) * step}%`} width={width} y={top + room - size} height={size} />
            {!isNarrow && size > 0 && (
              <text class="chart-value" x={middle} y={top + room - size - 5}>
                {textOf(value)}
              </text>
            )}
            {index % every === 0 && (
              <text x={middle} y={height - 7}>
                {nameOf(row)}
              </text>
            )}
          </g>
        )
      })}
      <line class="chart-grid" x1="0" x2="100%" y1={top + room} y2={top + room} />
      {isNarrow && highest > 0 && (
        <text class="chart-scale" x="0" y={top - 5}>
          {textOf(highest)}
        </text>
      )}
    </svg>
  )
}

/** A chart with one line for each of the first rows, for names of any length. */
export function LineChart(chart: ChartProps) {
  const { label, nameOf, figureOf } = chart
  const rows = chart.rows.slice(0, maxLines)
  const highest = Math.max(1, ...rows.map((row) => figureOf(row) ?? 0))
  return (
    <svg class="chart lines" role="img" aria-label={label} height={rows.length * lineHeight}>
      {rows.map((row, index) => (
        <g key={row.name} transform={`translate(0 ${index * lineHeight})`}>
          <title>{titleOf(chart, row)}</title>
          <text y="15">{nameOf(row)}</text>
          <rect class="chart-track" y="22" width="100%" height="8" />
          <rect class="chart-bar" y="22" width={`${((figureOf(row) ?? 0) / highest) * 100}%`} height="8" />
        </g>
      ))}
    </svg>
  )
}
