import { WidgetError } from './errors.ts'
import type { StreamEvent } from './types.ts'

/** An event of the contract is far smaller; a server gone wrong must not fill the page's memory. */
const longestEventCharacters = 1_000_000

export interface ReaderCallbacks {
  /** One event; undefined if it cannot be read. */
  onEvent(event: StreamEvent | undefined): void
  /** A heartbeat: the last sequence that the service knows. */
  onHeartbeat(lastSequence: number): void
  /** The service's wish for the wait before a reconnect, in milliseconds. */
  onRetry(ms: number): void
  /** Bytes arrived, whatever they mean. */
  onActivity(): void
}

/**
 * Reads one response of GET /events until it ends. Rejects where the connection breaks. An event counts only once its
 * closing blank line is there, so one that was cut off is asked for again.
 *
 * The format is that of https://html.spec.whatwg.org/multipage/server-sent-events.html. A parser from npm would be a sixth of
 * the client's size; the tests hold this one to `eventsource-parser`.
 */
export async function readEvents(body: ReadableStream<Uint8Array>, callbacks: ReaderCallbacks): Promise<void> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  let fields: Record<string, string> = {}
  /** Characters of the event so far, fields that mean nothing among them. */
  let held = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      callbacks.onActivity()
      rest += decoder.decode(value, { stream: true })
      // A CR at the end may be half of a line's end: it waits for what follows.
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop()!
      for (const line of lines) takeLine(line)
      if (rest.length + held > longestEventCharacters) throw new WidgetError('unexpected_response')
    }
  } finally {
    await reader.cancel().catch(() => {})
  }

  function takeLine(line: string) {
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
    const { sequence, occurredAt, data } = JSON.parse(text) as Record<string, unknown>
    const readable = id && type && Number.isSafeInteger(sequence) && typeof data === 'object' && data !== null
    if (!readable) return undefined
    return { id, type, sequence: sequence as number, occurredAt: String(occurredAt), data: data as StreamEvent['data'] }
  } catch {
    return undefined
  }
}
