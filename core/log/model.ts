import type { OperationKey } from './operation-keys.ts'

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
  /** As it came into the log; where it is now is the event's `currentState`. */
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

/** Never replayed, and gone from the log after a while: each leaves a hole. */
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
  operationKey?: OperationKey
  /** Hash of the operation's input, to tell a repeat from a conflict. */
  inputHash?: string
  message?: Message
  /** What the message has become since it came; the event itself, as streams carry it, never changes. */
  currentState?: MessageState
  /** What the event says, where it brings no message. */
  data?: EventData
  /** The conversation is closed after this event; the log's last event so tells the conversation's status. */
  closed?: true
  transient?: true
  /** From when a transient event may be removed; taken off the one that stays as the end of its log. */
  removableAt?: Date
  /** Sequence of the message that a change of state speaks of. */
  messageSequence?: number
  /** The message that it speaks of is still to be changed: what a crash left over. */
  unapplied?: true
}

export interface Agent {
  displayName: string
  avatarUrl?: string
}

/** What an event's data holds, besides a message (contract, section 4). */
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

/** After such an event the session's streams end. */
export function endsSession(type: EventType): type is SessionEndType {
  return sessionEnds.has(type)
}

/** A message as the history and the stream show it (contract, section 3). */
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

/** The event as a stream carries it: JSON on one line, the same bytes on every stream and every replay. */
export function encodeEvent(event: LogEvent): string {
  return JSON.stringify({
    sequence: event.sequence,
    type: event.type,
    occurredAt: event.occurredAt.toISOString(),
    data: event.message ? { message: presentMessage(event, event.message) } : (event.data ?? {}),
  })
}
