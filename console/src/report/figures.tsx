import { useState } from 'preact/hooks'
import type { Report, ReportRow } from '#proto/messaging/v1/messaging_pb.js'
import { countOf, formatDistance } from '../time.ts'
import { Segments, SelectField } from '../ui/form.tsx'
import { Card, Empty } from '../ui/page.tsx'
import { ColumnChart, LineChart } from './report-chart.tsx'

const groups = [
  ['day', 'Day'],
  ['hour', 'Hour'],
  ['tag', 'Tag'],
] as const
type Group = (typeof groups)[number][0]

const duration = (seconds: number | undefined) => (seconds === undefined ? '–' : formatDistance(seconds * 1000))
const score = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(1))

interface Measure {
  name: string
  of: (row: ReportRow) => number | undefined
  text: (value: number) => string
}

const measures = {
  conversations: { name: 'Conversations', of: (row) => row.conversations, text: String },
  median: { name: 'Median time to the first answer', of: (row) => row.medianAnswerSeconds, text: duration },
  p90: { name: '90 % of first answers within', of: (row) => row.p90AnswerSeconds, text: duration },
  rating: { name: 'Mean rating', of: (row) => row.meanRating, text: score },
} satisfies Record<string, Measure>

const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', timeZone: 'UTC' })
const names: Record<Group, (row: ReportRow) => string> = {
  day: ({ name }) => weekday.format(new Date(name)),
  hour: ({ name }) => `${name}:00`,
  tag: ({ name }) => name,
}

/** The figures of a report: the total, a chart and a table. */
export function Figures({ report: { total, byDay, byHour, byTag } }: { report: Report }) {
  const [group, setGroup] = useState<Group>('day')
  const [measure, setMeasure] = useState<keyof typeof measures>('conversations')
  if (!total || total.conversations === 0)
    return (
      <Empty icon="report" title="No conversations">
        <p>No visitor began a conversation in these days.</p>
      </Empty>
    )
  const rows = { day: byDay, hour: byHour, tag: byTag }[group]
  const { name, of, text }: Measure = measures[measure]
  const Chart = group === 'tag' ? LineChart : ColumnChart
  return (
    <>
      <dl class="figures">
        <Figure name="Conversations" value={String(total.conversations)} more={`${total.answered} answered`} />
        <Figure name="Median first answer" value={duration(total.medianAnswerSeconds)} more="half came sooner" />
        <Figure
          name="Nine in ten answered within"
          value={duration(total.p90AnswerSeconds)}
          more="one in ten took longer"
        />
        <Figure name="Mean rating" value={score(total.meanRating)} more={`of 5, ${countOf(total.ratings, 'rating')}`} />
      </dl>
      <Card title="Chart">
        <div class="bar">
          <Segments legend="By" options={groups} value={group} onChange={setGroup} />
          <SelectField
            label="Show"
            value={measure}
            options={Object.entries(measures).map(([key, each]) => [key, each.name] as const)}
            onChange={(chosen) => setMeasure(chosen as keyof typeof measures)}
          />
        </div>
        {rows.length === 0 ? (
          <p class="hint">None of these conversations has a tag.</p>
        ) : (
          <Chart
            label={`${name} by ${group}. The table has the figures.`}
            rows={rows}
            nameOf={names[group]}
            figureOf={of}
            textOf={text}
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
      <dt>{name}</dt>
      <dd>
        <strong>{value}</strong>
        <span class="hint">{more}</span>
      </dd>
    </div>
  )
}

function FigureTable({ group, rows }: { group: Group; rows: readonly ReportRow[] }) {
  const title = `Figures by ${group}`
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a narrow screen scrolls the table, also by keyboard.
    <section class="figure-table" aria-label={title} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{new Map(groups).get(group)}</th>
            <th scope="col">Conversations</th>
            <th scope="col">Answered</th>
            <th scope="col">Median</th>
            <th scope="col">90 % within</th>
            <th scope="col">Ratings</th>
            <th scope="col">Mean</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name} class={row.conversations === 0 ? 'zero' : undefined}>
              <th scope="row">
                <bdi>{group === 'day' ? row.name : names[group](row)}</bdi>
              </th>
              <td>{row.conversations}</td>
              <td>{row.answered}</td>
              <td>{duration(row.medianAnswerSeconds)}</td>
              <td>{duration(row.p90AnswerSeconds)}</td>
              <td>{row.ratings}</td>
              <td>{score(row.meanRating)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
