import type { Author, Message } from '#proto/messaging/v1/messaging_pb.js'
import { isTeam } from '../../../../browser/chat/messages.ts'

/** Returns the name of an agent or a bot, as operators see it; empty for other authors. */
export function authorName(author: Author | undefined, me: string): string {
  if (author?.kind === 'agent') return author.displayName === me ? 'You' : (author.displayName ?? 'Agent')
  return author?.kind === 'bot' ? `${author.displayName ?? ''} (bot)`.trim() : ''
}

const ends: Record<string, string> = { stopped: 'Stopped by the visitor', interrupted: 'Interrupted' }

/** Returns how an answer ended that is not whole, and the state that the visitor's browser has reported. */
export function stateText({ author, state, ended = '' }: Message): string {
  const seen = { delivered: 'Delivered', read: 'Read' }[state] ?? 'Sent'
  return isTeam(author) ? [ends[ended], seen].filter(Boolean).join(' · ') : ''
}
