import type { Core } from '../core.ts'
import { eventsOf } from '../log/event-store.ts'
import { type EventType, endsSession, eventTypes, type LogEvent } from '../log-event.ts'
import { field, integer, validate } from '../rules.ts'
import { findConversation } from './conversation-access.ts'

/** Events of sessions and commands are data of other methods, so they need the scopes of those methods. */
export function isReadable(type: EventType, scopes: ReadonlySet<string>): boolean {
  const [kind] = type.split('.')
  if (kind === 'navigation' || kind === 'screenshot') return scopes.has('commands:read')
  return (type !== 'session.identified' && !endsSession(type)) || scopes.has('sessions:read')
}

/** Types of events that operators see between the messages. */
const listed = eventTypes.filter((type) => !type.startsWith('message.') && !type.startsWith('typing.'))
const maxPage = 100
const defaultPage = 50

/**
 * Returns events in a range of a conversation, oldest first: those that operators see between the messages
 * and that the caller may read. Errors: NotFound, ValidationFailed.
 */
export async function listConversationEvents(
  core: Core,
  conversationId: string,
  range: { afterSequence: number; beforeSequence?: number; limit?: number },
  { workspaceId, scopes }: { workspaceId?: string; scopes: ReadonlySet<string> },
): Promise<{ events: LogEvent[]; hasMore: boolean }> {
  const { afterSequence: after, beforeSequence: before, limit = defaultPage } = range
  await findConversation(core, conversationId, workspaceId)
  validate(field('/limit', limit, integer(1, maxPage)))
  const types = listed.filter((type) => isReadable(type, scopes))
  const found = await eventsOf(core).ofTypes(types, { conversationId, after, before }, limit + 1)
  return { events: found.slice(0, limit), hasMore: found.length > limit }
}
