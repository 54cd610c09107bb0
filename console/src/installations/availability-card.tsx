import { editList, Form, keyed, Segments, SelectField, TextField, Toggle, useForm, withoutKey } from '../ui/form.tsx'
import { Button, Card, FailureNotice, IconButton } from '../ui/page.tsx'
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
  key: number
  from: string
  to: string
}

const toSpan = ({ from, to }: Pick<Span, 'from' | 'to'>): Span => keyed({ from, to })
const newSpan = (spans: Span[]) => toSpan(spans.length === 0 ? { from: '09:00', to: '17:00' } : { from: '', to: '' })

export function AvailabilityCard(part: InstallationPart) {
  const { availability } = part.installation
  const { busy, failure, save } = useUpdate(part)
  const hasOfflineForm = part.installation.capabilities?.offlineForm
  return (
    <Card title="Availability">
      <Segments
        legend="Visitors see this chat as"
        options={modes}
        disabled={busy}
        value={availability?.mode ?? 'auto'}
        onChange={(mode) => save({ availability: { mode } }, `Availability: ${new Map(modes).get(mode)}.`)}
      />
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
          save(
            { availability: { requiresOperator: on } },
            on ? 'An operator is required.' : 'An operator is not required.',
          )
        }
      />
      <FailureNotice failure={failure} />
      <HoursEditor {...part} />
    </Card>
  )
}

function HoursEditor(part: InstallationPart) {
  const { availability } = part.installation
  const { update } = useUpdate(part)
  const form = useForm({
    start() {
      const weekly = availability?.weeklyHours?.hours ?? []
      const hasOwnZone = availability && (weekly.length > 0 || availability.timeZone !== 'UTC')
      return {
        timeZone: (hasOwnZone && availability.timeZone) || ownTimeZone,
        days: weekdays.map((_, index) => weekly.filter(({ weekday }) => weekday === index + 1).map(toSpan)),
        dates: (availability?.exceptions?.dates ?? []).map(({ date, hours }) =>
          keyed({ date, hours: hours.map(toSpan) }),
        ),
      }
    },
    save: ({ timeZone, days, dates }) =>
      update(
        {
          availability: {
            timeZone,
            weeklyHours: {
              hours: days.flatMap((spans, index) => spans.map((span) => ({ weekday: index + 1, ...withoutKey(span) }))),
            },
            exceptions: { dates: dates.map(({ date, hours }) => ({ date, hours: hours.map(withoutKey) })) },
          },
        },
        'Opening hours saved.',
      ),
  })
  const { timeZone, days, dates } = form.draft
  const editDates = editList(dates, (next) => form.set({ dates: next }))
  const hasHours = days.some((spans) => spans.length > 0)
  const copyToWeekdays = (spans: Span[]) =>
    form.set({ days: days.map((known, index) => (index > 0 && index < 5 ? spans.map(toSpan) : known)) })

  return (
    <Form form={form} class="stack hours-editor" label="Opening hours">
      <h3>Opening hours</h3>
      <SelectField
        label="Time zone"
        options={[...new Set([timeZone, ...timeZones])].map((name) => [name, name.replaceAll('_', ' ')])}
        {...form.field('timeZone')}
      />
      <p class="hint">
        {hasHours ? 'Days without hours are closed.' : 'Without opening hours the chat is open around the clock.'}
      </p>
      <ul class="stack">
        {weekdays.map((name, index) => (
          <li key={name} class="hours-day">
            <span class="hours-name">{name}</span>
            <Spans
              of={name}
              spans={days[index]!}
              empty={hasHours ? 'Closed' : 'Open all day'}
              onChange={(spans) => form.set({ days: days.with(index, spans) })}
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
                onChange={(date) => editDates.change(index, { date })}
              />
              <IconButton
                icon="trash"
                label={`Remove the exception ${day.date || index + 1}`}
                onClick={() => editDates.remove(index)}
              />
            </div>
            <Spans
              of={day.date || `date ${index + 1}`}
              spans={day.hours}
              empty="Closed"
              onChange={(hours) => editDates.change(index, { hours })}
            />
          </li>
        ))}
      </ul>
      <div class="line">
        <Button
          kind="small"
          icon="plus"
          onClick={() => editDates.add(keyed({ date: '', hours: [] }))}
          text="Add exception"
        />
      </div>
    </Form>
  )
}

interface SpansProps {
  /** Name of the day, for screen readers. */
  of: string
  spans: Span[]
  empty: string
  onChange: (spans: Span[]) => void
  /** Copies the hours to the other weekdays. */
  onCopy?: (spans: Span[]) => void
}

function Spans({ of, spans, empty, onChange, onCopy }: SpansProps) {
  const edit = editList(spans, onChange)
  return (
    <div class="hours-spans">
      {spans.length === 0 && <span class="hint">{empty}</span>}
      {spans.map((span, index) => (
        <div key={span.key} class="line hours-span">
          <TimeInput label={`${of}, from`} value={span.from} onChange={(from) => edit.change(index, { from })} />
          <span aria-hidden="true">–</span>
          <TimeInput label={`${of}, to`} value={span.to} onChange={(to) => edit.change(index, { to })} />
          <IconButton icon="close" label={`Remove hours of ${of}`} onClick={() => edit.remove(index)} />
        </div>
      ))}
      <Button kind="ghost small" onClick={() => edit.add(newSpan(spans))}>
        Add hours<span class="visually-hidden"> on {of}</span>
      </Button>
      {onCopy && <Button kind="ghost small" onClick={() => onCopy(spans)} text="Copy to weekdays" />}
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
function completed(text: string) {
  const match = /^(\d{1,2})(?:[:.]?(\d\d))?$/.exec(text.trim())
  return match ? `${match[1]!.padStart(2, '0')}:${match[2] ?? '00'}` : text.trim()
}
