/** The event log's own terms (specification, section 6; contract, section 4). */

export type MessageState = 'queued' | 'sent' | 'delivered' | 'read' | 'failed'

export interface Author {
  kind: 'visitor' | 'agent' | 'system'
  displayName?: string
  avatarUrl?: string
}

export interface Message {
  messageId: string
  /** On the visitor's own messages only. */
  clientOperationId?: string
  /** On the visitor's own messages only. */
  sessionId?: string
  author: Author
  body: string
  contentType: 'text'
  locale?: string
  state: MessageState
}

export type SessionEndType =
  | 'session.expired'
  | 'session.revoked'
  | 'visitor.banned'
  | 'connection.disabled'
  | 'session.closed'

export type CommandEventType =
  | 'navigation.requested'
  | 'navigation.cancelled'
  | 'screenshot.requested'
  | 'screenshot.cancelled'

export type EventType =
  | 'message.accepted'
  | 'message.received'
  | 'session.identified'
  | CommandEventType
  | SessionEndType

/** One event of a conversation's log. A message is the event that brought it. */
export interface LogEvent {
  conversationId: string
  /** Its place in the conversation, from 1; it grows, with holes allowed. */
  sequence: number
  type: EventType
  occurredAt: Date
  /** Set when the event concerns one session: only that session's streams carry it. */
  sessionId?: string
  /** The logical operation that made it; unique in the conversation. */
  operationKey?: string
  /** Hash of the operation's input, to tell a repeat from a conflict. */
  inputHash?: string
  message?: Message
  /** What an event that is no message has to say, as the stream shows it. */
  data?: Record<string, unknown>
}

const sessionEnds: ReadonlySet<EventType> = new Set<SessionEndType>([
  'session.expired',
  'session.revoked',
  'visitor.banned',
  'connection.disabled',
  'session.closed',
])

/** After such an event the session's streams end. */
export function endsSession(type: EventType): type is SessionEndType {
  return sessionEnds.has(type)
}

/** A message as the history and the stream show it (contract, section 3). */
export function presentMessage({ conversationId, sequence, occurredAt }: LogEvent, message: Message) {
  const { messageId, clientOperationId, sessionId, author, body, contentType, locale, state } = message
  return {
    messageId,
    clientOperationId,
    sessionId,
    conversationId,
    sequence,
    author,
    body,
    contentType,
    locale,
    state,
    createdAt: occurredAt.toISOString(),
  }
}

/** The event as a stream carries it: JSON on one line, the same bytes on every stream and every replay. */
export function encodeEvent(event: LogEvent): string {
  return JSON.stringify({
    sequence: event.sequence,
    type: event.type,
    occurredAt: event.occurredAt.toISOString(),
    data: event.message ? { message: presentMessage(event, event.message) } : (event.data ?? {}),
  })
}
