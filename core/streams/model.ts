/** Events as streams send them (specification, section 6; contract, section 4). */
import { eventCategories } from '../../contract/event-categories.ts'
import { publicMessage } from '../log/message-model.ts'
import { type EventType, type GrowingText, isVisible, type LogEvent, type VisibleType } from '../log-event.ts'

type EventName = keyof typeof eventCategories

const encode = (type: EventName, occurredAt: Date, data: object, sequence?: number) =>
  JSON.stringify({ sequence, type, category: eventCategories[type], occurredAt: occurredAt.toISOString(), data })

/** Encodes an event as one line of JSON. Every stream and every replay sends the same bytes. */
export function encodeEvent(event: LogEvent & { type: VisibleType }): string {
  const { sequence, type, occurredAt, message, data = {} } = event
  return encode(type, occurredAt, message ? { message: publicMessage(event, message, message.state) } : data, sequence)
}

export interface StreamSession {
  sessionId: string
  conversationId: string
  connectionId: string
  connectionVersion: number
  publicSiteKey: string
  origin: string
  grantExpiresAt: Date
}

/** An event as streams send it, encoded once for all its readers. */
export interface StreamEvent {
  sequence: number
  type: EventType
  /** Time of the event in milliseconds since 1970. */
  at: number
  sessionId?: string
  /** Whether the event is typing, which no stream sends that opens later. */
  transient?: boolean
  /** The event's JSON. Undefined if no stream sends the event. */
  json?: string
  /** The message of the event, if it grows, with its text as it is in the JSON. */
  growing?: SentText
}

/** How much of a growing message a stream has sent, in code points and in characters. */
export interface SentText {
  messageId: string
  length: number
  chars: number
}

const streamEvents = new WeakMap<LogEvent, StreamEvent>()

/** Returns the same object for the same event. */
export function toStreamEvent(event: LogEvent): StreamEvent {
  const known = streamEvents.get(event)
  if (known) return known
  const { sequence, type, occurredAt, sessionId, transient, data, message, growth } = event
  // No stream sends typing events of visitors, or events for operators.
  const isTyping = transient && data?.author?.kind === 'visitor'
  const encoded = {
    sequence,
    type,
    at: occurredAt.getTime(),
    sessionId,
    transient,
    json: isTyping || !isVisible(type) ? undefined : encodeEvent({ ...event, type }),
    ...(growth?.state === 'growing' &&
      message && {
        growing: { messageId: message.messageId, length: growth.length, chars: message.body.length },
      }),
  }
  streamEvents.set(event, encoded)
  return encoded
}

export interface EncodedEvent {
  id: string
  sequence: number
  type: string
  json: string
}

export function encodeFor({ sequence, type, json = '' }: StreamEvent, epoch: string): EncodedEvent {
  return { id: `${epoch}-${sequence}`, sequence, type, json }
}

/** Encodes what a message has gained since `sent`. The event has no id and is never replayed. */
export function encodeGrowth({ messageId, text }: GrowingText, sent: SentText | undefined, at: Date): EncodedEvent {
  const type = 'message.grew'
  const data = { messageId, offset: sent?.length ?? 0, text: text.slice(sent?.chars ?? 0) }
  return { id: '', sequence: 0, type, json: encode(type, at, data) }
}

/** Events that belong to a session are sent on its own streams only. */
export function isSentTo({ sessionId, json }: StreamEvent, session: StreamSession): boolean {
  return json !== undefined && (sessionId === undefined || sessionId === session.sessionId)
}

/**
 * Creates the event that makes a client read the history again, or end the session with
 * `reauthenticationRequired`.
 */
export function resetRequired(
  epoch: string,
  sequence: number,
  { reason, at }: { reason: string; at: Date },
  reauthenticationRequired: boolean,
): EncodedEvent {
  const type = 'replay.reset.required'
  const json = encode(type, at, { reason, reauthenticationRequired }, sequence)
  return { id: `${epoch}-${sequence}`, sequence, type, json }
}
