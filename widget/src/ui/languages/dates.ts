import type { WidgetTexts } from './en.ts'

export type Dates = ReturnType<typeof createDates>

/** Creates each `DateTimeFormat` only once, because creating one is slow. */
export function createDates(locale: string | undefined, { today, yesterday }: WidgetTexts) {
  let timeFormat: Intl.DateTimeFormat | undefined
  let dayFormat: Intl.DateTimeFormat | undefined
  return {
    time(at: string) {
      timeFormat ??= new Intl.DateTimeFormat(locale, { hour: 'numeric', minute: '2-digit' })
      return timeFormat.format(new Date(at))
    },
    weekday: (at: string) =>
      new Date(at).toLocaleString(locale, { weekday: 'long', hour: 'numeric', minute: '2-digit' }),
    /** Returns minutes, or whole hours from an hour on, as a text. */
    duration: (minutes: number) =>
      (minutes < 60 ? minutes : Math.round(minutes / 60)).toLocaleString(locale, {
        style: 'unit',
        unit: minutes < 60 ? 'minute' : 'hour',
        unitDisplay: 'long',
      }),
    moment: (at: string) => new Date(at).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short' }),
    day(at: string) {
      const date = new Date(at)
      const current = new Date()
      const before = new Date(current.getFullYear(), current.getMonth(), current.getDate() - 1)
      if (date.toDateString() === current.toDateString()) return today
      if (date.toDateString() === before.toDateString()) return yesterday
      dayFormat ??= new Intl.DateTimeFormat(locale, { dateStyle: 'long' })
      return dayFormat.format(date)
    },
  }
}
