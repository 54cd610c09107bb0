import type { FieldIssue } from '../../contract/errors.ts'
import type { Agent, Author, LogEvent, MessageState } from '../log-event.ts'
import { field, line } from '../rules.ts'

/**
 * Maximum age of a cached conversation's immutable fields. A wake-up drops them within a second when the
 * conversation is hidden, so the age only matters if a wake-up was lost.
 */
export const conversationFactsMs = 60_000

export interface Conversation {
  conversationId: string
  workspaceId: string
  connectionId: string
  /** Identity of the event log. Positions from a log with another epoch are invalid. */
  epoch: string
  createdAt: Date
  /** These fields are for the inbox. They are derived from the log and may lag behind it. */
  lastMessageAt?: Date
  lastSequence?: number
  lastSessionId?: string
  status?: 'open' | 'closed'
  /** Sequence of the event that last closed the conversation. */
  closedSequence?: number
  queue?: QueuePlace
  assignment?: Assignment
  bots?: BotState
  /** The visitor's latest rating, with the sequence of its event. The comment is in the event only. */
  rating?: StoredRating
  tags?: Tags
  /** The bot that last wrote, with the sequence of its message. */
  botAuthor?: { sequence: number; bot: Agent }
  mail?: AnswerMail
  /** Set if the visitor wants no more mails for this conversation. */
  noMails?: true
}

/** A mail to the visitor with answers that no device has shown: one for each absence. */
interface AnswerMail {
  /** The oldest of the answers. */
  messageId: string
  /** `sending` is final if the process or the connection has ended: nobody knows the outcome. */
  state: 'waiting' | 'sending' | 'sent' | 'refused' | 'dropped'
  at: Date
  /** Time of the next attempt. Set in the state `waiting` only. */
  dueAt?: Date
  attempts: number
}

/** The state of a conversation for operators' queues, after one event of its log. */
export interface QueuePlace {
  /** Sequence of the event. A lower sequence never replaces a higher one. */
  sequence: number
  open?: true
  /** Time since when the visitor waits for an answer. Set only while the conversation is open. */
  waitingSince?: Date
}

/** Returns the place after a message, a closing or a reopening. */
export function queuePlaceOf({ sequence, closed, waitingSince }: LogEvent): QueuePlace {
  return closed ? { sequence } : { sequence, open: true, ...(waitingSince && { waitingSince }) }
}

/** Fields of a conversation whose changes are events of its log. */
export type AnnouncedField = 'assignment' | 'bots' | 'tags'

export interface Announced {
  /** Number of changes so far. */
  version: number
  /** True when the log has the event of this version. */
  announced: boolean
}

/** Whose conversations: of an agent by name, of an operator by id, or null for those of nobody. */
export type Assignee = { name: string } | { operator: string } | null

interface Assignment extends Announced {
  agent?: Agent
  operator?: string
  /** Agent who was assigned before the last change. */
  previous?: Agent
}

/** Whether bots may act in a conversation. Absent if they have never been stopped. */
interface BotState extends Announced {
  isStopped: boolean
  /** The request for a person, by a bot or the visitor, if it stopped the bots. */
  request?: { operationId: string; inputHash: string; bot?: Agent; at: Date }
}

export interface StoredRating {
  sequence: number
  score: number
}

/** Whether the visitor of a closed conversation may rate it, or has rated it. */
export type RatingState = 'requested' | 'given'

export const ratingOf = ({ sequence, data }: LogEvent): StoredRating => ({ sequence, score: data?.score ?? 0 })

export const isRating = ({ type }: LogEvent) => type === 'rating.given'

/** A conversation that never had a tag has no such object. */
export interface Tags extends Announced {
  /** Ordered by the time at which they were added. */
  names: string[]
  /** The last change. */
  tag: string
  isAdded: boolean
  at: Date
}

/** Returns a tag as it is stored and compared: without case and without superfluous spaces. */
export const tagOf = (sent: string) =>
  sent
    .replaceAll(/[^\S\p{Cc}]+/gu, ' ')
    .replaceAll(/^ | $/g, '')
    .toLowerCase()
    .normalize('NFC')

export const tagIssue = (tag: string | undefined): FieldIssue | undefined => field('/tag', tag, line(1, 40))

/** Returns undefined if the event is not a bot's message. */
export function botAuthorOf({ sequence, message }: LogEvent): Conversation['botAuthor'] {
  if (message?.author.kind !== 'bot') return undefined
  const { displayName = '', avatarUrl } = message.author
  return { sequence, bot: { displayName, ...(avatarUrl && { avatarUrl }) } }
}

/** A note of an operator. Visitors never see notes. */
export interface Note {
  noteId: string
  /** Id that the operator's client chose; unique in the conversation. */
  operationId: string
  inputHash: string
  author: Agent
  body: string
  createdAt: Date
}

export interface TypingTurn {
  /** Consists of the conversation's id and the author, who has at most one turn at a time. */
  _id: string
  turnId: string
  conversationId: string
  author: Author
  renewals: number
  renewedAt: Date
  endsAt: Date
  /** Set while a process ends the turn. The turn can then not be renewed. */
  ending?: true
}

/** The states in their order. `failed` is missing because only browsers use it. */
const order: MessageState[] = ['queued', 'sent', 'delivered', 'read']
export const before = (state: MessageState) => order.slice(0, order.indexOf(state))

export function stateOf({ currentState, message }: Pick<LogEvent, 'currentState' | 'message'>): MessageState {
  return currentState ?? message?.state ?? 'queued'
}

/** Whether a state event is a receipt for agents' messages. Only visitors' messages have an operation id. */
export const isReceipt = ({ data }: LogEvent) => data?.clientOperationId === undefined

export const isRedaction = ({ type }: LogEvent) => type === 'message.redacted'

export const withoutText = (event: LogEvent, redactedAt: Date): LogEvent => ({
  ...event,
  message: event.message && { ...event.message, body: '', redactedAt },
})

/** Applies changes of states and withdrawals that are not stored with their messages yet. */
export function withChanges(messages: LogEvent[], changes: LogEvent[]): LogEvent[] {
  return messages.map((stored) => {
    const redaction = changes.find((one) => isRedaction(one) && one.messageSequence === stored.sequence)
    const message = redaction ? withoutText(stored, redaction.occurredAt) : stored
    const concerns = (change: LogEvent) =>
      isReceipt(change)
        ? message.type === 'message.received' && message.sequence <= (change.messageSequence ?? 0)
        : message.sequence === change.messageSequence
    const states = changes.flatMap((change) => (concerns(change) && change.data?.state ? [change.data.state] : []))
    const furthest = states.reduce(
      (one, other) => (order.indexOf(other) > order.indexOf(one) ? other : one),
      stateOf(message),
    )
    return states.length === 0 ? message : { ...message, currentState: furthest }
  })
}

/** Fields that the inbox shows in addition to those of the stored conversation. */
export interface ConversationSummary {
  /** The visitor of the session that sent the latest message. */
  visitor?: { identityState: 'anonymous' | 'verified'; displayName?: string; externalSubject?: string }
  lastMessage?: LogEvent
  contact?: ConversationContact
}

/** Unverified contact data from a lead of the conversation. */
interface ConversationContact {
  leadId: string
  name?: string
  email?: string
}
