import type { FieldIssue } from '../../contract/errors.ts'
import type { Contact } from '../leads/model.ts'
import type { Conversation, StoredRating } from '../log/conversation-model.ts'
import type { Author, LogEvent, MessageState } from '../log-event.ts'
import { field, line } from '../rules.ts'

/**
 * Maximum age of a cached conversation's immutable fields. A wake-up drops them within a second when the
 * conversation is hidden, so the age only matters if a wake-up was lost.
 */
export const conversationFactsMs = 60_000

/** Whose conversations: of an agent by name, of an operator by id, or null for those of nobody. */
export type Assignee = { name: string } | { operator: string } | null

/** Whether the visitor of a closed conversation may rate it, or has rated it. */
export type RatingState = 'requested' | 'given'

export const ratingOf = ({ sequence, data }: LogEvent): StoredRating => ({ sequence, score: data?.score ?? 0 })

export const isRating = ({ type }: LogEvent) => type === 'rating.given'

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
  contact?: Contact
}
