/** Events of a conversation's log, and the keys of their operations (specification, section 6). */
import type {
  Author as AuthorOfProto,
  GrownMessage,
  Message as MessageOfProto,
  Rating as RatingOfProto,
} from '#proto/messaging/v1/messaging_pb.js'
import { type EventName, eventCategories } from '../contract/event-categories.ts'
import type { ProtoFields } from '../contract/proto-fields.ts'

export type MessageState = 'queued' | 'sent' | 'delivered' | 'read' | 'failed'

export interface Author extends ProtoFields<AuthorOfProto> {
  kind: 'visitor' | 'agent' | 'bot' | 'system'
}

/** A message as its event stores it: the fields of the proto, without those that the event itself has. */
export interface Message
  extends Omit<
    ProtoFields<MessageOfProto>,
    'author' | 'conversationId' | 'sequence' | 'createdAt' | 'redactedAt' | 'quickReplies' | 'growing'
  > {
  author: Author
  quickReplies?: string[]
  contentType: 'text'
  /** Time at which the message was withdrawn. Its body is then empty. */
  redactedAt?: Date
  /** State of the message when it was written. The current state is `currentState` of the event. */
  state: MessageState
}

const sessionEndTypes = [
  'session.expired',
  'session.revoked',
  'visitor.banned',
  'connection.disabled',
  'session.closed',
] as const satisfies EventName[]

export type SessionEndType = (typeof sessionEndTypes)[number]

export type CommandEventType = {
  [Name in EventName]: (typeof eventCategories)[Name] extends 'command' ? Name : never
}[EventName]

/** Transient events are never replayed. The log removes them later, which leaves holes in its sequences. */
export type TypingType = 'typing.started' | 'typing.stopped'

const operatorEventTypes = [
  'human.requested',
  'bot.stopped',
  'bot.resumed',
  'conversation.tagged',
  'conversation.untagged',
  'form.submitted',
  'message.unseen',
] as const

/** Types of events for operators. No stream of a visitor sends them. */
type OperatorEventType = (typeof operatorEventTypes)[number]

/** Types of events that a stream sends and no log stores. */
const unloggedTypes = ['availability.changed', 'message.grew', 'replay.reset.required'] as const satisfies EventName[]

export type VisibleType = Exclude<EventName, (typeof unloggedTypes)[number]>

export type EventType = VisibleType | OperatorEventType

const unlogged: ReadonlySet<string> = new Set(unloggedTypes)

export const eventTypes = [...Object.keys(eventCategories), ...operatorEventTypes].filter(
  (name): name is EventType => !unlogged.has(name),
)

/** One event of a conversation's log. A message is stored in the event that announces it. */
export interface LogEvent {
  conversationId: string
  /** Position in the log, from 1. Sequences grow and may have holes. */
  sequence: number
  type: EventType
  occurredAt: Date
  /** Session whose streams may send the event. Absent if the streams of every session may. */
  sessionId?: string
  /** Key of the operation that made the event. Unique in the conversation. */
  operationKey?: OperationKey
  /** Hash of the operation's input, which distinguishes a repeated operation from a conflicting one. */
  inputHash?: string
  message?: Message
  /** Current state of the message. An event on a stream never changes, so streams do not send it. */
  currentState?: MessageState
  /** Absent if the event has a message. */
  data?: EventData
  /** True if the conversation is closed after this event. So the last event of a log has the current state. */
  closed?: true
  /** Time of the visitor's first message that waits for an answer after this event. Absent if none waits. */
  waitingSince?: Date
  transient?: true
  /** Time from which a transient event may be removed. Unset while it is the end of its log. */
  removableAt?: Date
  /** Subject of the operator's session or token that sent the message. Never shown. */
  sentBy?: string
  /** Present if the message grew or grows. Its body is the text so far. */
  growth?: Growth
  /** Time of the message. Only in `message.completed`. */
  begunAt?: Date
  /** Sequence of the message that `message.state.changed`, `message.redacted` or `message.completed` is about. */
  messageSequence?: number
  /** True until the change is applied to its message. A crash can delay this step. */
  unapplied?: true
}

export type GrowthState = 'growing' | 'completed' | 'stopped' | 'interrupted'

/** State of a message of a bot that gains text call by call. */
export interface Growth {
  state: GrowthState
  /** Number of code points of the text so far. */
  length: number
  /** Time from which any core completes the message. Unset when the log has its event `message.completed`. */
  until?: Date
  /** Sequence of the event `message.completed`. */
  end?: number
}

/** Text that a growing message has gained. */
export type GrownPart = ProtoFields<GrownMessage>

export interface GrowingText {
  conversationId: string
  messageId: string
  sequence: number
  text: string
  /** Number of code points of the text. */
  length: number
}

export interface Agent {
  displayName: string
  avatarUrl?: string
}

export type Rating = ProtoFields<RatingOfProto>

/** Data of an event that has no message (contract, section 4). */
interface EventData extends Partial<Rating> {
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
  tag?: string
  /** Only in `form.submitted`, and in `message.unseen` if the visitor has left an address. */
  leadId?: string
  /** Time of the message. Only in `message.unseen`. */
  sentAt?: string
  expiresAt?: string
}

const sessionEnds: ReadonlySet<EventType> = new Set(sessionEndTypes)

const ofOperators: ReadonlySet<EventType> = new Set(operatorEventTypes)

/**
 * Whether the event is the end of a message that grew. The log stores it without the message. Readers get the
 * message from the event that it completes.
 */
export const isCompletion = ({ type }: Pick<LogEvent, 'type'>) => type === 'message.completed'

export const isVisible = (type: EventType): type is VisibleType => !ofOperators.has(type)

export function endsSession(type: EventType): type is SessionEndType {
  return sessionEnds.has(type)
}

/** Whether the event is a new message or a form, which reopens a conversation and moves it up in operators' lists. */
export const isEntry = ({ message, type }: Pick<LogEvent, 'message' | 'type'>) =>
  (message !== undefined && type !== 'message.completed') || type === 'form.submitted'

export type LogStart = Pick<LogEvent, 'sequence' | 'occurredAt' | 'transient'>

export interface LogEnd {
  sequence: number
  closed: boolean
  waitingSince?: Date
}

declare const brand: unique symbol
/** Key of an operation in a log. Only `operationKeys` creates such keys. */
export type OperationKey = string & { readonly [brand]: true }

const agentPrefix = 'agent '

/**
 * Keys of operations are unique in a conversation and begin with the kind of writer. Operation ids that visitors and
 * agents choose have no spaces, so they cannot form the key of another writer. Only keys of visitors begin with a
 * session id. Never change the format: a repeat must find the event of an earlier version.
 */
export const operationKeys = {
  visitorMessage: (sessionId: string, clientOperationId: string) => keyOf(sessionId, clientOperationId),
  agentMessage: (clientOperationId: string) => `${agentPrefix}${clientOperationId}` as OperationKey,
  botMessage: (clientOperationId: string) => keyOf('bot', clientOperationId),
  humanRequest: (clientOperationId: string) => keyOf('human', clientOperationId),
  botChange: (version: number) => keyOf('bots', String(version)),
  session: (sessionId: string, type: EventType) => keyOf('session', sessionId, type),
  messageState: (messageId: string, state: MessageState) => keyOf('state', messageId, state),
  unseen: (sequence: number) => keyOf('unseen', String(sequence)),
  form: (formSubmissionId: string) => keyOf('form', formSubmissionId),
  rating: (sessionId: string, idempotencyKey: string) => keyOf('rating', sessionId, idempotencyKey),
  redaction: (messageId: string) => keyOf('redaction', messageId),
  completion: (messageId: string) => keyOf('completion', messageId),
  assignment: (version: number) => keyOf('assignment', String(version)),
  tagChange: (version: number) => keyOf('tags', String(version)),
  typing: (turnId: string, step: string) => keyOf('typing', turnId, step),
  command: (commandId: string, type: EventType) => keyOf(commandId, type),
}

const keyOf = (...words: string[]) => words.join(' ') as OperationKey

/** Returns the operation id that an agent chose; undefined for any other key. */
export function agentOperationIn(key: OperationKey | undefined): string | undefined {
  return key?.startsWith(agentPrefix) ? key.slice(agentPrefix.length) : undefined
}
