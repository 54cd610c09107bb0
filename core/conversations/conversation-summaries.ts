import type { EventStore } from '../log/event-store.ts'
import type { LogEvent } from '../log/model.ts'
import type { SessionStore } from '../visitors/session-store.ts'
import type { Conversation } from './conversation-store.ts'

/** What an inbox shows of a conversation besides its document. */
export interface ConversationSummary {
  /** The visitor of the session that wrote last. */
  visitor?: { identityState: 'anonymous' | 'verified'; displayName?: string; externalSubject?: string }
  lastMessage?: LogEvent
}

export interface ConversationSummaries {
  /** In the order of the conversations. */
  of(conversations: Conversation[]): Promise<ConversationSummary[]>
}

/** Loads visitors and latest messages of a page with two queries. */
export function createConversationSummaries({
  sessions,
  events,
}: {
  sessions: Pick<SessionStore, 'find'>
  events: Pick<EventStore, 'at'>
}): ConversationSummaries {
  return {
    async of(conversations) {
      const places = conversations.flatMap(({ conversationId, lastSequence }) =>
        lastSequence === undefined ? [] : [{ conversationId, sequence: lastSequence }],
      )
      const sessionIds = conversations.flatMap(({ lastSessionId }) => lastSessionId ?? [])
      const [found, latest] = await Promise.all([sessions.find(sessionIds), events.at(places)])
      const sessionsById = new Map(found.map((session) => [session.sessionId, session]))
      const latestById = new Map(latest.map((event) => [event.conversationId, event]))
      return conversations.map(({ conversationId, lastSessionId }) => {
        const session = lastSessionId === undefined ? undefined : sessionsById.get(lastSessionId)
        const lastMessage = latestById.get(conversationId)
        return {
          visitor: session && toVisitor(session),
          lastMessage: lastMessage?.message && lastMessage,
        }
      })
    },
  }
}

function toVisitor({ identity }: { identity?: { externalSubject: string; displayName?: string } }) {
  if (!identity) return { identityState: 'anonymous' as const }
  const { externalSubject, displayName } = identity
  return {
    identityState: 'verified' as const,
    externalSubject,
    displayName,
  }
}
