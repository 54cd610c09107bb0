import { WidgetError } from './errors.ts'
import type { StreamEvent } from './types.ts'

/** Events of the contract are far smaller. The bound protects the page's memory from a faulty server. */
const longestEventCharacters = 1_000_000

export interface ReaderCallbacks {
  /** One event; undefined if it cannot be read. */
  onEvent(event: StreamEvent | undefined): void
  /** A heartbeat: the last sequence that the service knows. */
  onHeartbeat(lastSequence: number): void
  /** The service's reconnect delay, in milliseconds. */
  onRetry(ms: number): void
  /** Bytes have arrived. */
  onActivity(): void
}

/**
 * Reads one response of GET /events until it ends. Rejects if the connection breaks. An event is complete only with its
 * closing blank line, so an event that was cut off is requested again.
 *
 * The format is that of https://html.spec.whatwg.org/multipage/server-sent-events.html. A parser from npm would be a sixth of
 * the client's size; the tests hold this one to `eventsource-parser`.
 */
export async function readEvents(body: ReadableStream<Uint8Array>, callbacks: ReaderCallbacks): Promise<void> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  let fields: Record<string, string> = {}
  /** Characters of the current event, unknown fields included. */
  let held = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      callbacks.onActivity()
      rest += decoder.decode(value, { stream: true })
      // A CR at the end may be the first half of CRLF, so it waits for the next chunk.
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
