import { useState } from 'preact/hooks'
import type { Report, ReportRow } from '#proto/messaging/v1/messaging_pb.js'
import { countOf, formatDistance, formatNumber, locale } from '../time.ts'
import { Segments, SelectField } from '../ui/form.tsx'
import { Card, Empty } from '../ui/page.tsx'

const duration = (seconds: number | undefined) => (seconds === undefined ? '–' : formatDistance(seconds * 1000))
const score = (value: number | undefined) =>
  value === undefined ? '–' : value.toLocaleString(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 })

/** The figures that a chart can show. Each has a name, and a function that writes its value. */
const measures = {
  conversations: ['Conversations', formatNumber],
  medianAnswerSeconds: ['Median time to the first answer', duration],
  p90AnswerSeconds: ['90 % of first answers within', duration],
  meanRating: ['Mean rating', score],
} as const
type Measure = keyof typeof measures

const date = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' })
const weekday = new Intl.DateTimeFormat(locale, { weekday: 'short', day: 'numeric', timeZone: 'UTC' })
const groups = {
  day: { title: 'Day', grouping: 'by day', nameOf: ({ name }: ReportRow) => weekday.format(new Date(name)) },
  hour: { title: 'Hour', grouping: 'by hour', nameOf: ({ name }: ReportRow) => `${name}:00` },
  tag: { title: 'Tag', grouping: 'by tag', nameOf: ({ name }: ReportRow) => name },
}
type Group = keyof typeof groups

/** The figures of a report: the total, a chart and a table. */
export function Figures({ report: { total, byDay, byHour, byTag } }: { report: Report }) {
  const [group, setGroup] = useState<Group>('day')
  const [measure, setMeasure] = useState<Measure>('conversations')
  if (!total || total.conversations === 0)
    return (
      <Empty icon="report" title="No conversations">
        <p>No visitor began a conversation in these days.</p>
      </Empty>
    )
  const rows = { day: byDay, hour: byHour, tag: byTag }[group]
  const [name, textOf] = measures[measure]
  const { grouping, nameOf } = groups[group]
  const Chart = group === 'tag' ? LineChart : ColumnChart
  return (
    <>
      <dl class="stack figures">
        <Figure
          name="Conversations"
          value={formatNumber(total.conversations)}
          more={`${formatNumber(total.answered)} answered`}
        />
        <Figure name="Median first answer" value={duration(total.medianAnswerSeconds)} more="half came sooner" />
        <Figure name="Nine in ten within" value={duration(total.p90AnswerSeconds)} more="one in ten took longer" />
        <Figure
          name="Mean rating"
          value={score(total.meanRating)}
          more={countOf(total.ratings, 'of 5 · # rating', 'of 5 · # ratings')}
        />
      </dl>
      <Card title="Chart">
        <div class="bar">
          <Segments
            legend="By"
            options={Object.entries(groups).map(([key, { title }]) => [key as Group, title] as const)}
            value={group}
            onChange={setGroup}
          />
          <SelectField
            label="Show"
            value={measure}
            options={Object.entries(measures).map(([key, [each]]) => [key, each] as const)}
            onChange={(chosen) => setMeasure(chosen as Measure)}
          />
        </div>
        {rows.length === 0 ? (
          <p class="hint">None of these conversations has a tag.</p>
        ) : (
          <Chart
            label={`${name} ${grouping}. The table has the figures.`}
            rows={rows}
            nameOf={nameOf}
            measure={measure}
            textOf={textOf}
          />
        )}
      </Card>
      {rows.length > 0 && <FigureTable group={group} rows={rows} />}
    </>
  )
}

function Figure({ name, value, more }: { name: string; value: string; more: string }) {
  return (
    <div>
      <dt class="hint">{name}</dt>
      <dd>
        <strong>{value}</strong>
        <span class="hint">{more}</span>
      </dd>
    </div>
  )
}

const columns = ['Conversations', 'Answered', 'Median', '90 % within', 'Ratings', 'Mean']
const cellsOf = (row: ReportRow) => [
  formatNumber(row.conversations),
  formatNumber(row.answered),
  duration(row.medianAnswerSeconds),
  duration(row.p90AnswerSeconds),
  formatNumber(row.ratings),
  score(row.meanRating),
]

function FigureTable({ group, rows }: { group: Group; rows: readonly ReportRow[] }) {
  const { title, grouping, nameOf } = groups[group]
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a narrow screen scrolls the table, also by keyboard.
    <section class="figure-table" aria-label={`Figures ${grouping}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {[title, ...columns].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name} class={row.conversations === 0 ? 'zero' : undefined}>
              <th scope="row">
                <bdi>{group === 'day' ? date.format(new Date(row.name)) : nameOf(row)}</bdi>
              </th>
              {cellsOf(row).map((cell, index) => (
                <td key={index}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

interface ChartProps {
  label: string
  rows: readonly ReportRow[]
  nameOf: (row: ReportRow) => string
  measure: Measure
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

const titleOf = ({ nameOf, measure, textOf }: ChartProps, row: ReportRow) => {
  const value = row[measure]
  return `${nameOf(row)}: ${value === undefined ? 'none' : textOf(value)}`
}

/** A chart with one column for each row. Each figure is also in the table below the chart. */
function ColumnChart(chart: ChartProps) {
  const { label, rows, nameOf, measure, textOf } = chart
  const highest = Math.max(...rows.map((row) => row[measure] ?? 0))
  const every = Math.ceil(rows.length / maxNames)
  const step = 100 / rows.length
  const isNarrow = rows.length > maxNames
  return (
    <svg class="chart" role="img" aria-label={label} height={height}>
      {[top, top + room / 2].map((y) => (
        <line key={y} class="chart-grid" x1="0" x2="100%" y1={y} y2={y} />
      ))}
      {rows.map((row, index) => {
        const value = row[measure] ?? 0
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
function LineChart(chart: ChartProps) {
  const { label, nameOf, measure } = chart
  const rows = chart.rows.slice(0, maxLines)
  const highest = Math.max(1, ...rows.map((row) => row[measure] ?? 0))
  return (
    <svg class="chart lines" role="img" aria-label={label} height={rows.length * lineHeight}>
      {rows.map((row, index) => (
        <g key={row.name} transform={`translate(0 ${index * lineHeight})`}>
          <title>{titleOf(chart, row)}</title>
          <text y="15">{nameOf(row)}</text>
          <rect class="chart-track" y="22" width="100%" height="8" />
          <rect class="chart-bar" y="22" width={`${((row[measure] ?? 0) / highest) * 100}%`} height="8" />
        </g>
      ))}
    </svg>
  )
}
