import type { ChatTexts } from './texts.ts'

export type Dates = ReturnType<typeof createDates>

/** Times and days in the words of a locale. Making a format is slow, so each is made once, when it is needed. */
export function createDates(locale: string | undefined, { today, yesterday }: ChatTexts, now = () => new Date()) {
  let timeFormat: Intl.DateTimeFormat | undefined
  let dayFormat: Intl.DateTimeFormat | undefined
  return {
    /** @param at RFC 3339 */
    time(at: string) {
      timeFormat ??= new Intl.DateTimeFormat(locale, { hour: 'numeric', minute: '2-digit' })
      return timeFormat.format(new Date(at))
    },
    /** @param at RFC 3339 */
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
