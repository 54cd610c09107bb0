import { createParser } from 'eventsource-parser'
import type { StreamEvent } from './types.ts'

/** An event of the contract is far smaller; a server gone wrong must not fill the page's memory. */
const longestEventCharacters = 1_000_000

export interface ReaderCallbacks {
  onEvent(event: StreamEvent): void
  /** An event that cannot be read. */
  onUnreadable(): void
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
 */
export async function readEvents(body: ReadableStream<Uint8Array>, callbacks: ReaderCallbacks): Promise<void> {
  const parser = createParser({
    maxBufferSize: longestEventCharacters,
    onRetry: callbacks.onRetry,
    onComment(comment) {
      const heartbeat = /^\s*hb (\d+)\s*$/.exec(comment)
      if (heartbeat) callbacks.onHeartbeat(Number(heartbeat[1]))
    },
    onEvent({ id, event: type, data }) {
      const event = parseEvent(id, type, data)
      if (event) callbacks.onEvent(event)
      else callbacks.onUnreadable()
    },
  })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      callbacks.onActivity()
      parser.feed(decoder.decode(value, { stream: true }))
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function parseEvent(id: string | undefined, type: string | undefined, text: string): StreamEvent | undefined {
  try {
    const { sequence, occurredAt, data } = JSON.parse(text) as Record<string, unknown>
    const readable = id && type && Number.isSafeInteger(sequence) && typeof data === 'object' && data !== null
    if (!readable) return undefined
    return { id, type, sequence: sequence as number, occurredAt: String(occurredAt), data: data as StreamEvent['data'] }
  } catch {
    return undefined
  }
}
