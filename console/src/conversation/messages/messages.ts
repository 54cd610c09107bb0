import type { Timestamp } from '@bufbuild/protobuf/wkt'
import type { Author, Message } from '#proto/messaging/v1/messaging_pb.js'
import { isEarlier, isTeam, stateRank } from '../../../../browser/chat/messages.ts'

/** Merges messages without duplicates, sorted by sequence. Each keeps its latest state. */
export function mergeMessages(known: readonly Message[], more: readonly Message[]): Message[] {
  const byId = new Map(known.map((message) => [message.messageId, message]))
  for (const message of more) {
    const earlier = byId.get(message.messageId)
    if (earlier?.redactedAt || (earlier && isEarlier(message, earlier))) continue
    const isBehind = earlier && stateRank(message.state) < stateRank(earlier.state)
    byId.set(message.messageId, isBehind ? { ...message, state: earlier.state } : message)
  }
  return [...byId.values()].sort((one, other) => one.sequence - other.sequence)
}

/** Sets a later state of a message. The state of an agent's message also applies to earlier ones. */
export function withState(messages: readonly Message[], messageId: string, state: string): readonly Message[] {
  const found = messages.find((message) => message.messageId === messageId)
  if (!found) return messages
  const changes = (message: Message) =>
    (message === found || (isTeam(found.author) && isTeam(message.author) && message.sequence < found.sequence)) &&
    stateRank(state) > stateRank(message.state)
  return messages.some(changes)
    ? messages.map((message) => (changes(message) ? { ...message, state } : message))
    : messages
}

export const withdrawn = (message: Message, redactedAt: Timestamp | undefined): Message => ({
  ...message,
  body: '',
  ended: undefined,
  redactedAt,
})

/** Returns the name of an agent or a bot, as operators see it; empty for other authors. */
export function authorName(author: Author | undefined, me: string) {
  if (author?.kind === 'agent') return author.displayName === me ? 'You' : (author.displayName ?? 'Agent')
  return author?.kind === 'bot' ? `${author.displayName ?? ''} (bot)`.trim() : ''
}

const ends: Record<string, string> = { stopped: 'Stopped by the visitor', interrupted: 'Interrupted' }

/** Returns how an answer ended that is not whole, and the state that the visitor's browser has reported. */
export function stateText({ author, state, ended = '' }: Message) {
  const seen = { delivered: 'Delivered', read: 'Read' }[state] ?? 'Sent'
  return isTeam(author) ? [ends[ended], seen].filter(Boolean).join(' · ') : ''
}
