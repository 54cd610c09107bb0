import type { Author, Message } from '#proto/messaging/v1/messaging_pb.js'
import { isTeam } from '../../../../browser/chat/messages.ts'

/** Returns the name of an agent or a bot, as operators see it; empty for other authors. */
export function authorName(author: Author | undefined, me: string): string {
  if (author?.kind === 'agent') return author.displayName === me ? 'You' : (author.displayName ?? 'Agent')
  return author?.kind === 'bot' ? `${author.displayName ?? ''} (bot)`.trim() : ''
}

/** Returns the state below a message, as the visitor's browser has reported it. */
export function stateText({ author, state }: Message): string {
  return isTeam(author) ? ({ delivered: 'Delivered', read: 'Read' }[state] ?? 'Sent') : ''
}
