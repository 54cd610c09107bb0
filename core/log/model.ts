import type { OperationKey } from './operation-keys.ts'

/** Types of the event log (specification, section 6; contract, section 4). */

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
  /** The state when the message was written. Its present state is the event's `currentState`. */
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

/** Transient: never replayed and removed from the log after a while, which leaves a hole. */
export type TypingType = 'typing.started' | 'typing.stopped'

export type EventType =
  | 'message.accepted'
  | 'message.received'
  | 'session.identified'
  | 'message.state.changed'
  | 'agent.assigned'
  | 'agent.unassigned'
  | 'conversation.closed'
  | 'conversation.reopened'
  | TypingType
  | CommandEventType
  | SessionEndType

/** One event of a conversation's log. A message is the event that carries it. */
export interface LogEvent {
  conversationId: string
  /** Position in the conversation, from 1. It grows and may have holes. */
  sequence: number
  type: EventType
  occurredAt: Date
  /** Set when only the streams of one session carry the event. */
  sessionId?: string
  /** Key of the operation that made the event; unique in the conversation. */
  operationKey?: OperationKey
  /** Hash of the operation's input. It distinguishes a repeat from a conflict. */
  inputHash?: string
  message?: Message
  /** Present state of the message. The event on the streams never changes. */
  currentState?: MessageState
  /** Data of an event without a message. */
  data?: EventData
  /**
   * The conversation is closed after this event. The last event of a log has the conversation's
   * state.
   */
  closed?: true
  transient?: true
  /**
   * Time from which a transient event may be removed. Unset when the event stays as the end of its
   * log.
   */
  removableAt?: Date
  /** Sequence of the message whose state changed. */
  messageSequence?: number
  /** The change is not applied to its message yet, for example after a crash. */
  unapplied?: true
}

export interface Agent {
  displayName: string
  avatarUrl?: string
}

/** Data of an event besides a message (contract, section 4). */
export interface EventData {
  author?: Author
  agent?: Agent
  messageId?: string
  clientOperationId?: string
  state?: MessageState
  commandId?: string
  requestId?: string
  url?: string
  label?: string
  purpose?: string
  expiresAt?: string
}

const sessionEnds: ReadonlySet<EventType> = new Set<SessionEndType>([
  'session.expired',
  'session.revoked',
  'visitor.banned',
  'connection.disabled',
  'session.closed',
])

/** Whether an event of this type ends the streams of its session. */
export function endsSession(type: EventType): type is SessionEndType {
  return sessionEnds.has(type)
}

/** A message as the history and the stream present it (contract, section 3). */
function presentMessage({ conversationId, sequence, occurredAt }: LogEvent, message: Message) {
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

/**
 * Encodes an event for streams as one line of JSON. Every stream and every replay gets the same
 * bytes.
 */
export function encodeEvent(event: LogEvent): string {
  return JSON.stringify({
    sequence: event.sequence,
    type: event.type,
    occurredAt: event.occurredAt.toISOString(),
    data: event.message ? { message: presentMessage(event, event.message) } : (event.data ?? {}),
  })
}
