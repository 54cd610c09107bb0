import { type Timestamp, timestampDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt'
import { language } from './language.ts'

/** Locale of dates. English ones are British, because opening hours use the 24-hour clock. */
export const locale = language === 'en' ? 'en-GB' : language
const formatter = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(locale, options)
const time = formatter({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const day = formatter({ weekday: 'long', day: 'numeric', month: 'long' })
const shortDay = formatter({ day: 'numeric', month: 'short' })
const dayOfYear = formatter({ day: 'numeric', month: 'short', year: 'numeric' })
const full = formatter({ dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

export const formatTime = time.format
export const formatFull = full.format
export const isSameDay = (one: Date, other: Date) => one.toDateString() === other.toDateString()

/** Returns the heading of a day: “Today”, “Yesterday” or the date. */
export function formatDay(date: Date, now: Date) {
  if (isSameDay(date, now)) return 'Today'
  const yesterday = new Date(now)
  yesterday.setDate(yesterday.getDate() - 1)
  if (isSameDay(date, yesterday)) return 'Yesterday'
  return date.getFullYear() === now.getFullYear() ? day.format(date) : dayOfYear.format(date)
}

/** Returns the time if the date is today, else the date. */
export function formatShort(date: Date, now: Date) {
  if (isSameDay(date, now)) return time.format(date)
  return date.getFullYear() === now.getFullYear() ? shortDay.format(date) : dayOfYear.format(date)
}

export const formatNumber = new Intl.NumberFormat(language).format
const plurals = new Intl.PluralRules(language)

/** Returns for example `1,200 entries` for the texts `# entry` and `# entries`. */
export const countOf = (count: number, one: string, many: string) =>
  (plurals.select(count) === 'one' ? one : many).replace('#', formatNumber(count))

export function formatDistance(milliseconds: number) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 90) return `${minutes} min`
  return minutes < 2880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} days`
}

export const hoursAgo = (hours: number) => timestampFromMs(Date.now() - hours * 3_600_000)

export const dateOf = (timestamp: Timestamp | undefined): Date | undefined => timestamp && timestampDate(timestamp)

/** Returns a time in milliseconds since the epoch, or 0 if there is none. */
export const millisecondsOf = (timestamp: Timestamp | undefined) => (timestamp ? timestampMs(timestamp) : 0)
