import { useState } from 'preact/hooks'
import { Button, IconButton } from '../ui/button.tsx'
import { Field, TextField, Toggle } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { useUnsaved } from '../ui/unsaved.tsx'
import { IssueList } from './issue-list.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

const modes = [
  ['auto', 'Automatic'],
  ['online', 'Always online'],
  ['away', 'Away'],
] as const
const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
const timeZones = ['UTC', ...Intl.supportedValuesOf('timeZone')]
const ownTimeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone

interface Span {
  from: string
  to: string
}
interface Row extends Span {
  key: number
}
interface DayRows {
  key: number
  date: string
  rows: Row[]
}

let nextKey = 0
const toRow = ({ from, to }: Span): Row => ({ key: nextKey++, from, to })
const toSpan = ({ from, to }: Row): Span => ({ from, to })
const newRow = (rows: Row[]): Row => toRow(rows.length === 0 ? { from: '09:00', to: '17:00' } : { from: '', to: '' })

/** Card that edits when visitors see the chat as online. */
export function AvailabilityCard(part: InstallationPart) {
  const { availability } = part.installation
  const { busy, failure, save } = useUpdate(part)
  const hasOfflineForm = part.installation.capabilities?.offlineForm
  return (
    <Card title="Availability">
      <fieldset class="segments">
        <legend>Visitors see this chat as</legend>
        {modes.map(([mode, label]) => (
          <label key={mode}>
            <input
              type="radio"
              name="availability-mode"
              disabled={busy}
              checked={(availability?.mode ?? 'auto') === mode}
              onChange={() => save({ availability: { mode } }, `Availability: ${label}.`)}
            />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
      <p class="hint">
        Automatic follows the opening hours. While the chat is away,{' '}
        {hasOfflineForm
          ? 'visitors are offered the offline form.'
          : 'visitors see a note. Turn on the offline form under Forms to collect their details.'}
      </p>
      <Toggle
        label="Only while an operator is here"
        hint="Automatic also needs somebody who has the inbox open. Closing the last inbox takes effect within 15 seconds."
        disabled={busy}
        checked={availability?.requiresOperator ?? false}
        onChange={(on) =>
          save({ availability: { requiresOperator: on } }, `An operator is ${on ? 'required' : 'not required'}.`)
        }
      />
      <FailureNotice failure={failure} />
      <HoursEditor {...part} />
    </Card>
  )
}

function HoursEditor(part: InstallationPart) {
  const { availability } = part.installation
  const { failure, save } = useUpdate(part)
  const weekly = availability?.weeklyHours?.hours ?? []
  const [timeZone, setTimeZone] = useState(() =>
    weekly.length === 0 && availability?.timeZone === 'UTC' ? ownTimeZone : (availability?.timeZone ?? ownTimeZone),
  )
  const [days, setDays] = useState(() =>
    weekdays.map((_, index) => weekly.filter(({ weekday }) => weekday === index + 1).map(toRow)),
  )
  const [dates, setDates] = useState<DayRows[]>(() =>
    (availability?.exceptions?.dates ?? []).map(({ date, hours }) => ({
      key: nextKey++,
      date,
      rows: hours.map(toRow),
    })),
  )
  const hasHours = days.some((rows) => rows.length > 0)
  const edited = {
    timeZone,
    weeklyHours: {
      hours: days.flatMap((rows, index) => rows.map((row) => ({ weekday: index + 1, ...toSpan(row) }))),
    },
    exceptions: { dates: dates.map(({ date, rows }) => ({ date, hours: rows.map(toSpan) })) },
  }
  const { form, onSaved } = useUnsaved(edited)

  async function submit(event: Event) {
    event.preventDefault()
    if (await save({ availability: edited }, 'Opening hours saved.')) onSaved()
  }

  const copyToWeekdays = (rows: Row[]) =>
    setDays(days.map((known, index) => (index > 0 && index < 5 ? rows.map((row) => toRow(row)) : known)))

  return (
    <form class="stack hours-editor" ref={form} onSubmit={submit} noValidate aria-label="Opening hours">
      <h3>Opening hours</h3>
      <Field label="Time zone">
        {(attributes) => (
          <select
            {...attributes}
            class="input"
            value={timeZone}
            onChange={(event) => setTimeZone(event.currentTarget.value)}
          >
            {(timeZones.includes(timeZone) ? timeZones : [timeZone, ...timeZones]).map((name) => (
              <option key={name} value={name}>
                {name.replaceAll('_', ' ')}
              </option>
            ))}
          </select>
        )}
      </Field>
      <p class="hint">
        {hasHours ? 'Days without hours are closed.' : 'Without opening hours the chat is open around the clock.'}
      </p>
      <ul class="stack">
        {weekdays.map((name, index) => (
          <li key={name} class="hours-day">
            <span class="hours-name">{name}</span>
            <Spans
              of={name}
              rows={days[index]!}
              empty={hasHours ? 'Closed' : 'Open all day'}
              onChange={(rows) => setDays(days.with(index, rows))}
              onCopy={index === 0 && days[0]!.length > 0 ? copyToWeekdays : undefined}
            />
          </li>
        ))}
      </ul>
      <h3>Exceptions</h3>
      <p class="hint">Holidays and other dates with their own hours. A date without hours is closed.</p>
      <ul class="stack">
        {dates.map((day, index) => (
          <li key={day.key} class="hours-day">
            <div class="line">
              <TextField
                label={`Date ${index + 1}`}
                type="date"
                value={day.date}
                onChange={(date) => setDates(dates.with(index, { ...day, date }))}
              />
              <IconButton
                icon="trash"
                label={`Remove the exception ${day.date || index + 1}`}
                onClick={() => setDates(dates.toSpliced(index, 1))}
              />
            </div>
            <Spans
              of={day.date || `date ${index + 1}`}
              rows={day.rows}
              empty="Closed"
              onChange={(rows) => setDates(dates.with(index, { ...day, rows }))}
            />
          </li>
        ))}
      </ul>
      <IssueList failure={failure} shownPath={shownPath} />
      <div class="line">
        <Button kind="small" onClick={() => setDates([...dates, { key: nextKey++, date: '', rows: [] }])}>
          <Icon name="plus" />
          Add exception
        </Button>
      </div>
    </form>
  )
}

/** Removes the parts of an issue's path that the form does not show, such as `/availability/`. */
const shownPath = (path: string) =>
  path.replace('/availability/', '').replace(/(weeklyHours)\/hours|(exceptions)\/dates/, '$1$2')

interface SpansProps {
  /** Name of the day, for screen readers. */
  of: string
  rows: Row[]
  /** Text to show if `rows` is empty. */
  empty: string
  onChange: (rows: Row[]) => void
  /** Copies the hours to the other weekdays. */
  onCopy?: (rows: Row[]) => void
}

function Spans({ of, rows, empty, onChange, onCopy }: SpansProps) {
  return (
    <div class="hours-spans">
      {rows.length === 0 && <span class="hint">{empty}</span>}
      {rows.map((row, index) => (
        <div key={row.key} class="line hours-span">
          <TimeInput
            label={`${of}, from`}
            value={row.from}
            onChange={(from) => onChange(rows.with(index, { ...row, from }))}
          />
          <span aria-hidden="true">–</span>
          <TimeInput label={`${of}, to`} value={row.to} onChange={(to) => onChange(rows.with(index, { ...row, to }))} />
          <IconButton icon="close" label={`Remove hours of ${of}`} onClick={() => onChange(rows.toSpliced(index, 1))} />
        </div>
      ))}
      <Button kind="ghost small" onClick={() => onChange([...rows, newRow(rows)])}>
        Add hours<span class="visually-hidden"> on {of}</span>
      </Button>
      {onCopy && (
        <Button kind="ghost small" onClick={() => onCopy(rows)}>
          Copy to weekdays
        </Button>
      )}
    </div>
  )
}

/** A time as text, because a time field of the browser cannot contain 24:00. */
function TimeInput({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <input
      class="input mono time"
      aria-label={label}
      placeholder="hh:mm"
      maxLength={5}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value.trim())}
      onBlur={(event) => onChange(completed(event.currentTarget.value))}
    />
  )
}

/** Completes a time that was typed in a short form: `9` becomes `09:00`. */
function completed(text: string): string {
  const match = /^(\d{1,2})(?:[:.]?(\d\d))?$/.exec(text.trim())
  return match ? `${match[1]!.padStart(2, '0')}:${match[2] ?? '00'}` : text.trim()
}
