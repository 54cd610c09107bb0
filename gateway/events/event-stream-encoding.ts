import { eventCategories } from '../../contract/event-categories.ts'
import { eventDefinitions } from '../schemas/events.ts'

/**
 * Encodes a change of availability. The event has no id and no sequence, so it does not change a
 * browser's position. `data` is JSON.
 */
export function encodeAvailability(data: string, occurredAt: Date): Buffer {
  const json = `{"type":"availability.changed","category":"${eventCategories['availability.changed']}","occurredAt":"${occurredAt.toISOString()}","data":${data}}`
  return Buffer.from(`event: availability.changed\ndata: ${json.replace(/[\r\n]+/g, ' ')}\n\n`)
}

/** Events that end a stream. They are never duplicates, so they skip the check of the sequence. */
export const ENDING_EVENTS: ReadonlySet<string> = new Set(
  Object.entries(eventDefinitions).flatMap(([name, { terminal }]) => (terminal === 'never' ? [] : [name])),
)

/**
 * Encodes the start of a stream: the reconnect time and a comment. The comment makes proxies
 * forward the headers, because some wait for the first bytes of the body.
 */
export function encodeOpening(retryMs: number): string {
  return `retry: ${Math.round(retryMs)}\n\n: open\n\n`
}

export function encodeHeartbeat(position: number): string {
  return `: hb ${position}\n\n`
}
