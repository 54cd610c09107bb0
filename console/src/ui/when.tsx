import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'
import { signal } from '@preact/signals'
import { dateOf, formatDistance, formatFull, formatShort, formatTime } from '../time.ts'

interface WhenProps {
  at: Timestamp | undefined
  full?: boolean
  /** Shows the time of day only, for entries below a heading with their date. */
  timeOnly?: boolean
}

/** Shows a short form of a time, with the full date as tooltip. */
export function When({ at, full, timeOnly }: WhenProps) {
  const date = dateOf(at)
  if (!date) return null
  const text = full ? formatFull(date) : timeOnly ? formatTime(date) : formatShort(date, new Date())
  return (
    // Browsers that translate a page replace its texts, so a changed text needs a new element.
    <time key={text} dateTime={date.toISOString()} title={formatFull(date)}>
      {text}
    </time>
  )
}

const minute = signal(Date.now())
setInterval(() => {
  minute.value = Date.now()
}, 30_000)

/** Shows how long a visitor has been waiting. */
export function Waiting({ since }: { since: Timestamp }) {
  const date = timestampDate(since)
  const minutes = Math.max(0, Math.floor((minute.value - date.getTime()) / 60_000))
  return (
    <time class="waiting" key={minutes} dateTime={date.toISOString()} title={`Waiting since ${formatFull(date)}`}>
      {minutes < 1 ? (
        'just now'
      ) : (
        <>
          <span class="waiting-word">waiting </span>
          {minutes < 90 ? `${minutes} min` : formatDistance(minutes * 60_000)}
        </>
      )}
    </time>
  )
}
