import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { dateOf, formatFull, formatShort, formatTime } from '../time.ts'

/** Shows a short form of a time, with the full date as tooltip. */
export function When({ at, full = false }: { at: Timestamp | undefined; full?: boolean }) {
  const date = dateOf(at)
  if (!date) return null
  return (
    <time dateTime={date.toISOString()} title={formatFull(date)}>
      {full ? formatFull(date) : formatShort(date, new Date())}
    </time>
  )
}

/** Shows the time of day, for entries below a heading with their date. */
export function TimeOfDay({ at }: { at: Timestamp | undefined }) {
  const date = dateOf(at)
  if (!date) return null
  return (
    <time dateTime={date.toISOString()} title={formatFull(date)}>
      {formatTime(date)}
    </time>
  )
}
