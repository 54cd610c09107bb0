import { type Timestamp, timestampDate, timestampMs } from '@bufbuild/protobuf/wkt'

// `en-GB`, because the console's texts are English and its opening hours use the 24-hour clock.
const formatter = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('en-GB', options)
const time = formatter({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const day = formatter({ weekday: 'long', day: 'numeric', month: 'long' })
const shortDay = formatter({ day: 'numeric', month: 'short' })
const dayOfYear = formatter({ day: 'numeric', month: 'short', year: 'numeric' })
const full = formatter({ dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

export const formatTime = (date: Date) => time.format(date)
export const formatFull = (date: Date) => full.format(date)
export const isSameDay = (one: Date, other: Date) => one.toDateString() === other.toDateString()

/** Returns the heading of a day: “Today”, “Yesterday” or the date. */
export function formatDay(date: Date, now: Date): string {
  if (isSameDay(date, now)) return 'Today'
  const yesterday = new Date(now)
  yesterday.setDate(yesterday.getDate() - 1)
  if (isSameDay(date, yesterday)) return 'Yesterday'
  return date.getFullYear() === now.getFullYear() ? day.format(date) : dayOfYear.format(date)
}

/** Returns the time if the date is today, else the date. */
export function formatShort(date: Date, now: Date): string {
  if (isSameDay(date, now)) return time.format(date)
  return date.getFullYear() === now.getFullYear() ? shortDay.format(date) : dayOfYear.format(date)
}

const number = new Intl.NumberFormat('en')

/** Returns for example `1,200 entries`. */
export const countOf = (count: number, one: string, many = `${one}s`) =>
  `${number.format(count)} ${count === 1 ? one : many}`

/** Returns a duration as a text, for example `5 min`. */
export function formatDistance(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 90
    ? `${minutes} min`
    : minutes < 2880
      ? `${Math.round(minutes / 60)} h`
      : `${Math.round(minutes / 1440)} days`
}

export const dateOf = (timestamp: Timestamp | undefined): Date | undefined => timestamp && timestampDate(timestamp)

/** Returns a time in milliseconds since the epoch, or 0 if there is none. */
export const millisecondsOf = (timestamp: Timestamp | undefined): number => (timestamp ? timestampMs(timestamp) : 0)
