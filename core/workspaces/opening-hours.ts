import { Temporal } from 'temporal-polyfill'
import { field, integer, issueIf } from '../rules.ts'
import type { Availability, Span } from './model.ts'

/** If there are no weekly hours, dates without an exception are open all day. */
export type OpeningHours = Pick<Availability, 'timeZone' | 'weeklyHours' | 'exceptions'>

export interface OpeningState {
  isOpen: boolean
  /** Time of the next change of `isOpen`, in milliseconds since 1970. Absent if it never changes. */
  nextChangeAt?: number
}

const allDay: Span[] = [{ from: '00:00', to: '24:00' }]
/** Days to search for the next change: more than a week, because a time zone can skip a day. */
const daysAhead = 9

/**
 * An installation is open while a clock in the time zone shows a time within the hours. Hours that the
 * clock skips are left out, and hours that it repeats count twice.
 */
export function openingState(hours: OpeningHours, now: number): OpeningState {
  const isOpen = isOpenAt(hours, now)
  if (hours.weeklyHours.length === 0 && hours.exceptions.length === 0) return { isOpen }
  const today = localTime(hours, now).toPlainDate()
  const next = changeWithin(hours, now, isOpen, today.subtract({ days: 1 }), daysAhead + 1)
  if (next !== undefined) return { isOpen, nextChangeAt: next }
  // Only a date with an exception can cause a later change.
  const later = hours.exceptions.map(({ date }) => Temporal.PlainDate.from(date)).sort(Temporal.PlainDate.compare)
  for (const date of later) {
    const change = changeWithin(hours, now, isOpen, date.subtract({ days: 1 }), 2)
    if (change !== undefined) return { isOpen, nextChangeAt: change }
  }
  return { isOpen }
}

export function isOpenAt(hours: OpeningHours, at: number): boolean {
  const local = localTime(hours, at)
  const minute = local.hour * 60 + local.minute
  return spansOn(hours, local.toPlainDate()).some(({ from, to }) => minutesOf(from) <= minute && minute < minutesOf(to))
}

const localTime = ({ timeZone }: OpeningHours, at: number) =>
  Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone)

function spansOn({ weeklyHours, exceptions }: OpeningHours, date: Temporal.PlainDate) {
  const exception = exceptions.find((one) => one.date === date.toString())
  if (exception) return exception.hours
  return weeklyHours.length === 0 ? allDay : weeklyHours.filter(({ weekday }) => weekday === date.dayOfWeek)
}

/** Returns the first change after `now` within `days` days from the date `first`. */
function changeWithin(hours: OpeningHours, now: number, isOpen: boolean, first: Temporal.PlainDate, days: number) {
  const times = new Set<number>()
  for (let day = 0; day <= days; day += 1) {
    const date = first.add({ days: day })
    const minutes = day < days ? spansOn(hours, date).flatMap(({ from, to }) => [minutesOf(from), minutesOf(to)]) : []
    for (const minute of [0, ...minutes]) for (const at of timesAt(hours, date, minute)) times.add(at)
  }
  const end = Math.max(...times)
  // A change of the time zone's offset can also move the local time into or out of the hours.
  let transition = localTime(hours, Math.min(...times)).getTimeZoneTransition('next')
  while (transition && transition.epochMilliseconds <= end) {
    times.add(transition.epochMilliseconds)
    transition = transition.getTimeZoneTransition('next')
  }
  return [...times].sort((one, other) => one - other).find((at) => at > now && isOpenAt(hours, at) !== isOpen)
}

/**
 * Returns the times at which a clock in the time zone shows this minute. There are two if the clock
 * repeats it. If the clock skips it, one is before the gap and one after it.
 */
function timesAt({ timeZone }: OpeningHours, date: Temporal.PlainDate, minute: number) {
  const local = date.toPlainDateTime().add({ minutes: minute })
  return (['earlier', 'later'] as const).map(
    (disambiguation) => local.toZonedDateTime(timeZone, { disambiguation }).epochMilliseconds,
  )
}

function minutesOf(time: string) {
  const [hour = 0, minute = 0] = time.split(':').map(Number)
  return hour * 60 + minute
}

const clockTime = /^([01]\d|2[0-3]):[0-5]\d$/
const zoneName = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/
const maxSpansPerDay = 10
const maxExceptions = 366

/** Rules that only occur here: `timeZone`, `date`, `endsBeforeBegins`, `overlap`. */
export function availabilityIssues({ mode, timeZone, weeklyHours = [], exceptions = [] }: Partial<Availability>) {
  const weekly = '/availability/weeklyHours/hours'
  const dates = '/availability/exceptions/dates'
  return [
    field('/availability/mode', mode, (value) => (['auto', 'online', 'away'].includes(value) ? undefined : 'enum')),
    field('/availability/timeZone', timeZone, (value) => (isTimeZone(value) ? undefined : 'timeZone')),
    issueIf(weeklyHours.length > 7 * maxSpansPerDay, weekly, 'maxItems'),
    ...weeklyHours.map(({ weekday }, index) => field(`${weekly}/${index}/weekday`, weekday, integer(1, 7))),
    ...spanIssues(weekly, weeklyHours, (one, other) => one.weekday === other.weekday),
    issueIf(exceptions.length > maxExceptions, dates, 'maxItems'),
    ...exceptions.flatMap(({ date, hours }, index) => [
      field(`${dates}/${index}/date`, date, (value) => {
        if (!isDate(value)) return 'date'
        return exceptions.findIndex((one) => one.date === value) === index ? undefined : 'uniqueItems'
      }),
      issueIf(hours.length > maxSpansPerDay, `${dates}/${index}/hours`, 'maxItems'),
      ...spanIssues(`${dates}/${index}/hours`, hours),
    ]),
  ]
}

function spanIssues<S extends Span>(path: string, spans: S[], isSameDay: (one: S, other: S) => boolean = () => true) {
  return spans.flatMap((span, index) => {
    const { from, to } = span
    const at = `${path}/${index}`
    const malformed = [
      field(`${at}/from`, from, (value) => (clockTime.test(value) ? undefined : 'pattern')),
      field(`${at}/to`, to, (value) => (clockTime.test(value) || value === '24:00' ? undefined : 'pattern')),
    ].filter((issue) => issue !== undefined)
    if (malformed.length > 0) return malformed
    // Times in this format can be compared as texts.
    if (to <= from) return { path: `${at}/to`, rule: 'endsBeforeBegins' }
    const overlaps = spans.slice(0, index).some((one) => isSameDay(one, span) && one.from < to && from < one.to)
    return issueIf(overlaps, `${at}/from`, 'overlap')
  })
}

/** Fixed offsets such as `+02:00` are not accepted. */
export function isTimeZone(name: string): boolean {
  if (!zoneName.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

export function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  try {
    return Temporal.PlainDate.from(text, { overflow: 'reject' }).toString() === text
  } catch {
    return false
  }
}
