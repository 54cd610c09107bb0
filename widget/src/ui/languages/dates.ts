import type { WidgetTexts } from './en.ts'

export type Dates = ReturnType<typeof createDates>

/**
 * Formats times and days. Creates each `DateTimeFormat` only once, because creating one is slow.
 */
export function createDates(locale: string | undefined, { today, yesterday }: WidgetTexts, now = () => new Date()) {
  let timeFormat: Intl.DateTimeFormat | undefined
  let dayFormat: Intl.DateTimeFormat | undefined
  return {
    /**
     * Returns the time of day as a text.
     *
     * @param at time in RFC 3339 format
     */
    time(at: string) {
      timeFormat ??= new Intl.DateTimeFormat(locale, { hour: 'numeric', minute: '2-digit' })
      return timeFormat.format(new Date(at))
    },
    /**
     * Returns the day of the week and the time as a text.
     *
     * @param at time in RFC 3339 format
     */
    weekday: (at: string) =>
      new Date(at).toLocaleString(locale, { weekday: 'long', hour: 'numeric', minute: '2-digit' }),
    /** Returns minutes, or whole hours from an hour on, as a text. */
    duration: (minutes: number) =>
      (minutes < 60 ? minutes : Math.round(minutes / 60)).toLocaleString(locale, {
        style: 'unit',
        unit: minutes < 60 ? 'minute' : 'hour',
        unitDisplay: 'long',
      }),
    /**
     * Returns the date and the time as a text.
     *
     * @param at time in RFC 3339 format
     */
    moment: (at: string) => new Date(at).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short' }),
    /**
     * Returns the day as a text.
     *
     * @param at time in RFC 3339 format
     */
    day(at: string) {
      const date = new Date(at)
      const current = now()
      const before = new Date(current.getFullYear(), current.getMonth(), current.getDate() - 1)
      if (date.toDateString() === current.toDateString()) return today
      if (date.toDateString() === before.toDateString()) return yesterday
      dayFormat ??= new Intl.DateTimeFormat(locale, { dateStyle: 'long' })
      return dayFormat.format(date)
    },
  }
}
