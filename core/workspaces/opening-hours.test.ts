import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import type { Availability } from './model.ts'
import { availabilityIssues, isOpenAt, type OpeningHours, openingState } from './opening-hours.ts'

const minuteMs = 60_000
const nine = { from: '09:00', to: '17:00' }
const workdays = [1, 2, 3, 4, 5].map((weekday) => ({ weekday, ...nine }))
const at = (text: string) => Date.parse(text)
const hours = (more: Partial<OpeningHours> = {}): OpeningHours => ({
  timeZone: 'Europe/Vienna',
  weeklyHours: workdays,
  exceptions: [],
  ...more,
})
const stateAt = (text: string, more?: Partial<OpeningHours>) => {
  const { isOpen, nextChangeAt } = openingState(hours(more), at(text))
  return [isOpen, nextChangeAt === undefined ? undefined : new Date(nextChangeAt).toISOString().slice(0, 16)]
}

describe('openingState', () => {
  it.each([
    ['2026-11-23T07:59:59Z', false, '2026-11-23T08:00'],
    ['2026-11-23T08:00:00Z', true, '2026-11-23T16:00'],
    ['2026-11-23T15:59:59.999Z', true, '2026-11-23T16:00'],
    ['2026-11-23T16:00:00Z', false, '2026-11-24T08:00'],
    ['2026-11-27T16:00:00Z', false, '2026-11-30T08:00'],
  ])('at %s follows the weekly hours', (time, isOpen, next) => {
    expect(stateAt(time)).toEqual([isOpen, next])
  })

  it('is always open if there are no hours and no exceptions', () => {
    expect(stateAt('2026-11-23T00:00:00Z', { weeklyHours: [] })).toEqual([true, undefined])
  })

  it('an exception replaces the hours of its date, and without weekly hours the other dates are open all day', () => {
    const closed = [{ date: '2026-12-24', hours: [] }]
    expect(stateAt('2026-12-23T16:00:00Z', { exceptions: closed })).toEqual([false, '2026-12-25T08:00'])
    expect(stateAt('2026-03-01T00:00:00Z', { weeklyHours: [], exceptions: closed })).toEqual([true, '2026-12-23T23:00'])
    expect(stateAt('2026-12-24T10:00:00Z', { weeklyHours: [], exceptions: closed })).toEqual([
      false,
      '2026-12-24T23:00',
    ])
  })

  it('hours that touch at midnight are one period', () => {
    const night = [
      { weekday: 5, from: '20:00', to: '24:00' },
      { weekday: 6, from: '00:00', to: '02:00' },
    ]
    expect(stateAt('2026-11-27T20:00:00Z', { weeklyHours: night })).toEqual([true, '2026-11-28T01:00'])
  })

  it.each([
    // The clock goes from 02:00 to 03:00, so it skips this hour.
    ['2026-03-28T23:00:00Z', '02:00', '03:00', false, undefined],
    ['2026-03-28T23:00:00Z', '02:30', '03:30', false, '2026-03-29T01:00'],
    ['2026-03-29T01:10:00Z', '02:30', '03:30', true, '2026-03-29T01:30'],
    // The clock goes from 03:00 back to 02:00, so it repeats this hour.
    ['2026-10-25T00:10:00Z', '02:00', '03:00', true, '2026-10-25T02:00'],
    ['2026-10-25T00:10:00Z', '02:00', '02:30', true, '2026-10-25T00:30'],
    ['2026-10-25T00:30:00Z', '02:00', '02:30', false, '2026-10-25T01:00'],
  ])('at %s, with the hours %s to %s, follows the clock on the day of its change', (time, from, to, isOpen, next) => {
    const date = new Date(at(time) + 2 * 3_600_000).toISOString().slice(0, 10)
    const exceptions = ['2026-01-01', date].map((each) => ({ date: each, hours: each === date ? [{ from, to }] : [] }))
    const closed = [{ weekday: 3, from: '00:00', to: '00:01' }]
    const [state, change] = stateAt(time, { weeklyHours: closed, exceptions })
    expect([state, String(change).startsWith(date) ? change : undefined]).toEqual([isOpen, next])
  })

  it('leaves out weekly hours on a date that the time zone skips', () => {
    // Samoa had no 30 December 2011.
    const skipped = { timeZone: 'Pacific/Apia', weeklyHours: [{ weekday: 5, from: '00:00', to: '24:00' }] }
    expect(stateAt('2011-12-30T08:00:00Z', skipped)).toEqual([false, '2012-01-05T10:00'])
  })
})

const clock = fc.integer({ min: 0, max: 96 }).map((quarter) => {
  const minutes = quarter * 15
  return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`
})
const span = fc
  .tuple(clock, clock)
  .filter(([one, other]) => one !== other)
  .map(([one, other]) => (one < other ? { from: one, to: other } : { from: other, to: one }))
/** Times around daylight saving changes, skipped dates and changes of a zone's standard offset. */
const moments = [
  ['Europe/Vienna', '2026-03-29T01:00:00Z'],
  ['Europe/Vienna', '2026-10-25T01:00:00Z'],
  ['America/New_York', '2026-03-08T07:00:00Z'],
  ['America/New_York', '2026-11-01T06:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30:00Z'],
  ['Pacific/Apia', '2011-12-30T10:00:00Z'],
  ['America/Caracas', '2016-05-01T07:00:00Z'],
  ['Asia/Pyongyang', '2018-05-04T15:00:00Z'],
  ['Africa/Cairo', '2026-04-23T22:00:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00:00Z'],
  ['Asia/Kathmandu', '2026-06-01T00:00:00Z'],
  ['UTC', '2026-12-31T23:59:00Z'],
] as const

const scene = fc
  .record({
    moment: fc.constantFrom(...moments),
    before: fc.integer({ min: -3 * 1440, max: 3 * 1440 }),
    weeklyHours: fc.array(fc.tuple(fc.integer({ min: 1, max: 7 }), span), { maxLength: 8 }),
    exceptions: fc.array(fc.tuple(fc.integer({ min: -2, max: 4 }), fc.array(span, { maxLength: 2 })), { maxLength: 3 }),
  })
  .map(({ moment: [timeZone, time], before, weeklyHours, exceptions }) => {
    const dateOf = (days: number) => new Date(at(time) + days * 86_400_000).toISOString().slice(0, 10)
    return {
      now: at(time) - before * minuteMs,
      hours: {
        timeZone,
        weeklyHours: weeklyHours.map(([weekday, each]) => ({ weekday, ...each })),
        exceptions: exceptions.map(([days, each]) => ({ date: dateOf(days), hours: each })),
      },
    }
  })

const formats = new Map<string, Intl.DateTimeFormat>()
/** Implements the same rule without Temporal, with the local time that `Intl` formats. */
function isOpenByWallClock({ timeZone, weeklyHours, exceptions }: OpeningHours, time: number): boolean {
  let format = formats.get(timeZone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-CA', {
      timeZone,
      hourCycle: 'h23',
      weekday: 'short',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
    })
    formats.set(timeZone, format)
  }
  const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]))
  const shown = `${parts.hour}:${parts.minute}`
  const weekday = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].indexOf(parts.weekday!.slice(0, 3)) + 1
  const exception = exceptions.find(({ date }) => date === `${parts.year}-${parts.month}-${parts.day}`)
  const spans = exception?.hours ?? weeklyHours.filter((one) => one.weekday === weekday)
  if (!exception && weeklyHours.length === 0) return true
  return spans.some(({ from, to }) => from <= shown && shown < to)
}

describe('any hours around changes of the clock', () => {
  it('isOpenAt returns true exactly while a clock in the time zone shows a time within the hours', () => {
    forAll([scene], runs(1_000, 10), ({ now, hours }) => {
      expect(isOpenAt(hours, now)).toBe(isOpenByWallClock(hours, now))
    })
  })

  it('openingState returns the next minute at which the hours begin or end', () => {
    forAll([scene], runs(300, 10), ({ now, hours }) => {
      const { isOpen, nextChangeAt } = openingState(hours, now)
      const until = Math.min(nextChangeAt ?? Number.POSITIVE_INFINITY, now + 4 * 86_400_000)
      for (let time = now; time < until; time += 15 * minuteMs)
        if (isOpenByWallClock(hours, time) !== isOpen)
          throw new Error(`changes earlier, at ${new Date(time).toISOString()}`)
      if (nextChangeAt === undefined) return
      expect(isOpenByWallClock(hours, nextChangeAt)).toBe(!isOpen)
      expect(isOpenByWallClock(hours, nextChangeAt - 1)).toBe(isOpen)
    })
  })
})

describe('availability settings', () => {
  const broken: [string, Partial<Availability>, string, string][] = [
    ['an unknown mode', { mode: 'open' as 'auto' }, '/availability/mode', 'enum'],
    ['an unknown time zone', { timeZone: 'Europe/Atlantis' }, '/availability/timeZone', 'timeZone'],
    ['a fixed offset', { timeZone: '+02:00' }, '/availability/timeZone', 'timeZone'],
    ['an empty time zone', { timeZone: '' }, '/availability/timeZone', 'timeZone'],
    ['a weekday 0', { weeklyHours: [{ weekday: 0, ...nine }] }, '/availability/weeklyHours/hours/0/weekday', 'minimum'],
    ['a weekday 8', { weeklyHours: [{ weekday: 8, ...nine }] }, '/availability/weeklyHours/hours/0/weekday', 'maximum'],
    [
      'hours that overlap',
      {
        weeklyHours: [
          { weekday: 1, ...nine },
          { weekday: 1, from: '16:59', to: '18:00' },
        ],
      },
      '/availability/weeklyHours/hours/1/from',
      'overlap',
    ],
    [
      'the same hours twice',
      {
        weeklyHours: [
          { weekday: 1, ...nine },
          { weekday: 1, ...nine },
        ],
      },
      '/availability/weeklyHours/hours/1/from',
      'overlap',
    ],
    [
      'hours that end before they begin',
      { weeklyHours: [{ weekday: 1, from: '17:00', to: '09:00' }] },
      '/availability/weeklyHours/hours/0/to',
      'endsBeforeBegins',
    ],
    [
      'empty hours',
      { weeklyHours: [{ weekday: 1, from: '09:00', to: '09:00' }] },
      '/availability/weeklyHours/hours/0/to',
      'endsBeforeBegins',
    ],
    ...['24:00', '9:00', '09:60', '25:00', '09:00:00', ''].map(
      (from): [string, Partial<Availability>, string, string] => [
        `a beginning at ${JSON.stringify(from)}`,
        { weeklyHours: [{ weekday: 1, from, to: '24:00' }] },
        '/availability/weeklyHours/hours/0/from',
        'pattern',
      ],
    ),
    ...['2026-02-30', '2026-13-01', '26-01-01', '2026-1-1', ''].map(
      (date): [string, Partial<Availability>, string, string] => [
        `the date ${JSON.stringify(date)}`,
        { exceptions: [{ date, hours: [] }] },
        '/availability/exceptions/dates/0/date',
        'date',
      ],
    ),
    [
      'a date twice',
      {
        exceptions: [
          { date: '2026-12-24', hours: [] },
          { date: '2026-12-24', hours: [nine] },
        ],
      },
      '/availability/exceptions/dates/1/date',
      'uniqueItems',
    ],
    [
      'hours of a date that overlap',
      { exceptions: [{ date: '2026-12-24', hours: [nine, { from: '10:00', to: '11:00' }] }] },
      '/availability/exceptions/dates/0/hours/1/from',
      'overlap',
    ],
  ]
  it.each(broken)('with %s are refused, and the error names the field', (_, settings, path, rule) => {
    expect(availabilityIssues(settings).filter((issue) => issue !== undefined)).toEqual([{ path, rule }])
  })

  it('with hours that touch, and with hours until midnight, are accepted', () => {
    const weeklyHours = [
      { weekday: 1, from: '09:00', to: '12:00' },
      { weekday: 1, from: '12:00', to: '24:00' },
      { weekday: 2, from: '10:00', to: '11:00' },
    ]
    const exceptions = [{ date: '2028-02-29', hours: [] }]
    const issues = availabilityIssues({ mode: 'auto', timeZone: 'America/New_York', weeklyHours, exceptions })
    expect(issues.every((issue) => issue === undefined)).toBe(true)
  })
})
