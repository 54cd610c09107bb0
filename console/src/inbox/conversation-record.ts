import {
  type Conversation,
  ConversationStatus,
  type InboxEvent,
  type Message,
} from '#proto/messaging/v1/messaging_pb.js'
import { stateRank } from '../../../browser/chat/messages.ts'
import { withdrawn } from '../conversation/messages/messages.ts'

/** A frame of the inbox stream: the state of a conversation and its new events. */
export interface Change {
  conversation: Conversation
  events: readonly InboxEvent[]
}

/** Returns the fields that only lists and `GetConversation` contain. They stay when other answers arrive. */
export function summaryOf(known: Conversation | undefined): Partial<Conversation> {
  const { visitor, contact, lastMessage, canRequestRating = false } = known ?? {}
  return { visitor, contact, lastMessage, canRequestRating }
}

/** Applies a change to what the service answered about a conversation. */
export function patched(known: Conversation | undefined, { conversation, events }: Change): Conversation {
  const lastSequence = Math.max(conversation.lastSequence, known?.lastSequence ?? 0)
  const base = { ...conversation, lastSequence, ...summaryOf(known) }
  return { ...base, lastMessage: events.reduce(lastMessageAfter, base.lastMessage) }
}

function lastMessageAfter(last: Message | undefined, event: InboxEvent): Message | undefined {
  const { type, message, messageId, state, occurredAt } = event
  if (message) return !last || message.sequence >= last.sequence ? laterState(last, message) : last
  if (!last || last.messageId !== messageId) return last
  if (type === 'message.state.changed' && state !== undefined) return laterState(last, { ...last, state })
  return type === 'message.redacted' ? withdrawn(last, occurredAt) : last
}

/** Returns `next`, or `last` if it is the same message in a later state. */
const laterState = (last: Message | undefined, next: Message) =>
  last?.messageId === next.messageId && stateRank(last.state) >= stateRank(next.state) ? last : next

/** Returns true if the change may move the conversation in a list, or change the numbers of the queues. */
export const movesConversation = ({ events }: Change) =>
  events.some(({ type }) => !/^(typing|message\.(state|redacted)|navigation|screenshot)\b/.test(type))

/**
 * Returns true in three cases: the visitor wrote last and nobody has read it, the visitor sent a form last
 * and waits, or a bot asked for a person. The request counts until an agent takes the conversation.
 */
export function isUnread(conversation: Conversation) {
  const { lastMessage, waitingSince } = conversation
  if (!lastMessage && waitingSince) return true
  return (lastMessage?.author?.kind === 'visitor' && lastMessage.state !== 'read') || isWaiting(conversation)
}

/** Returns true from a bot's request for a person until an agent is assigned or answers. */
export function isWaiting({ bot, agent, lastMessage, status }: Conversation) {
  const isTaken = agent !== undefined || lastMessage?.author?.kind === 'agent'
  return bot?.humanRequestedAt !== undefined && !isTaken && status !== ConversationStatus.CLOSED
}

type Named = Pick<Conversation, 'visitor' | 'conversationId'> & Partial<Pick<Conversation, 'contact'>>

/** Returns a verified name, else what the visitor left in a form, else a generated name. */
export function visitorName({ visitor, contact, conversationId }: Named) {
  const given = visitor?.displayName || visitor?.externalSubject || contact?.name || contact?.email
  return given || `Visitor ${conversationId.slice(-4).toUpperCase()}`
}
