import { encodeAvailability } from './event-stream-encoding.ts'

interface AvailabilityReader<Reader> {
  sink: { write(reader: Reader, bytes: Buffer): void }
  reader: Reader
  /** The availability that was last sent to the reader, or that was known when its stream began. */
  availability: string
}

/**
 * Sends `availability.changed` to each reader whose last availability differs. If a subscription
 * resumes on another core, its reader may have missed the change, or may already have received it.
 */
export function forwardAvailability<Reader>(
  readers: Iterable<AvailabilityReader<Reader>>,
  data: string,
  occurredAt: Date,
): void {
  const bytes = encodeAvailability(data, occurredAt)
  for (const entry of readers) {
    if (entry.availability === data) continue
    entry.availability = data
    entry.sink.write(entry.reader, bytes)
  }
}
