import { WidgetError } from '../vocabulary/errors.ts'
import type { StreamEvent } from '../vocabulary/types.ts'

/** Real events are far shorter. The limit protects the page's memory. */
const longestEventCharacters = 1_000_000

export interface ReaderCallbacks {
  /** Called with each event, or with undefined if the event is invalid. */
  onEvent(event: StreamEvent | undefined): void
  /** Called at each heartbeat with the sequence number of the newest event in the event log. */
  onHeartbeat(lastSequence: number): void
  /** Called when the service sends a reconnect delay, with this delay in milliseconds. */
  onRetry(ms: number): void
  /** Called each time bytes arrive. */
  onActivity(): void
}

/**
 * Reads one response of GET /events to its end. Rejects if the connection breaks. If the response
 * ends before an event's closing blank line, drops the event; the next connection requests this
 * event again. The format is defined in
 * https://html.spec.whatwg.org/multipage/server-sent-events.html. An npm parser would add about a
 * sixth to the client's size, so this package has its own. The tests compare it with
 * `eventsource-parser`.
 */
export async function readEvents(body: ReadableStream<Uint8Array>, callbacks: ReaderCallbacks): Promise<void> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  let fields: Record<string, string> = {}
  /** Number of characters of the current event so far, including its unknown fields. */
  let held = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      callbacks.onActivity()
      rest += decoder.decode(value, { stream: true })
      // A CR at the end of the text may be the first half of a CRLF, so wait for the next bytes.
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop()!
      for (const line of lines) readLine(line)
      if (rest.length + held > longestEventCharacters) throw new WidgetError('unexpected_response')
    }
  } finally {
    await reader.cancel().catch(() => {})
  }

  function readLine(line: string) {
    const [, name = '', text = ''] = /^([^:]*):? ?(.*)$/s.exec(line)!
    if (line === '') {
      const { id, event: type, data } = fields
      fields = {}
      held = 0
      if (data === undefined) return
      callbacks.onEvent(parseEvent(id, type, data))
    } else if (name === '') {
      const heartbeat = /^hb (\d+)\s*$/.exec(text)
      if (heartbeat) callbacks.onHeartbeat(Number(heartbeat[1]))
    } else if (name !== 'retry') {
      held += line.length
      fields[name] = name === 'data' && fields.data !== undefined ? `${fields.data}\n${text}` : text
    } else if (/^\d+$/.test(text)) {
      callbacks.onRetry(Number(text))
    }
  }
}

export function parseEvent(id: string | undefined, type: string | undefined, text: string): StreamEvent | undefined {
  try {
    const { sequence, category, occurredAt, data } = JSON.parse(text) as Record<string, unknown>
    // An event in the log has both an id and a sequence. Other events have neither.
    const isPlaced = id ? Number.isSafeInteger(sequence) : sequence === undefined
    if (!type || !isPlaced || typeof data !== 'object' || !data) return undefined
    return {
      id: id!,
      type,
      sequence: sequence as number,
      category: category as string | undefined,
      occurredAt: String(occurredAt),
      data: data as StreamEvent['data'],
    }
  } catch {
    return undefined
  }
}
