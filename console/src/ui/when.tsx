import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { dateOf, formatFull, formatShort } from '../time.ts'

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
