import type { EventStore } from '../log/event-store.ts'
import type { EventType, LogEvent } from '../log-event.ts'
import { field, integer, validate } from '../rules.ts'
import type { ConversationAccess } from './conversation-access.ts'

export interface ConversationEvents {
  /**
   * Returns events in a range of a conversation, oldest first. Includes only the types that
   * operators see between the messages. Errors: NotFound if the conversation does not exist,
   * ValidationFailed.
   */
  list(
    conversationId: string,
    range: { afterSequence: number; beforeSequence?: number; limit?: number },
    workspaceId: string | undefined,
  ): Promise<{ events: LogEvent[]; hasMore: boolean }>
}

const listed: EventType[] = [
  'agent.assigned',
  'agent.unassigned',
  'conversation.closed',
  'conversation.reopened',
  'session.identified',
  'session.closed',
  'session.expired',
  'session.revoked',
  'visitor.banned',
  'connection.disabled',
  'navigation.requested',
  'navigation.cancelled',
  'screenshot.requested',
  'screenshot.cancelled',
]
const maxPage = 100
const defaultPage = 50

export function createConversationEvents({
  events,
  conversationAccess,
}: {
  events: Pick<EventStore, 'ofTypes'>
  conversationAccess: ConversationAccess
}): ConversationEvents {
  return {
    async list(conversationId, { afterSequence, beforeSequence, limit = defaultPage }, workspaceId) {
      await conversationAccess.find(conversationId, workspaceId)
      validate(field('/limit', limit, integer(1, maxPage)))
      const range = { conversationId, after: afterSequence, before: beforeSequence }
      const found = await events.ofTypes(listed, range, limit + 1)
      return { events: found.slice(0, limit), hasMore: found.length > limit }
    },
  }
}
