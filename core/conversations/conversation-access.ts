import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { inWorkspace } from '../errors.ts'
import type { EventStore } from '../log/event-store.ts'
import type { Session } from '../sessions/model.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { LiveCache } from '../wakeups/live-cache.ts'
import type { ConversationStore } from './conversation-store.ts'
import type { ContactsOf, Conversation, ConversationSummary } from './model.ts'

/** The immutable fields of a conversation. */
interface ConversationFacts {
  workspaceId: string
  epoch: string
}

export interface ConversationAccess {
  /**
   * Returns a conversation of the caller's workspace. Without `workspaceId` the caller may access
   * every workspace. Errors: `NotFound` for an unknown conversation or one of another workspace.
   */
  find(conversationId: string, workspaceId: string | undefined): Promise<Conversation>
  /**
   * Throws `NotFound` if the conversation does not exist in the workspace. Uses cached data that is
   * at most a second old.
   */
  require(conversationId: string, workspaceId: string | undefined): Promise<void>
  /** Returns the epoch of a conversation's log; undefined if there is no such conversation. */
  epochOf(conversationId: string): Promise<string | undefined>
}

export function createConversationAccess(
  conversations: Pick<ConversationStore, 'find'>,
  facts: LiveCache<ConversationFacts>,
): ConversationAccess {
  const load = createBatchLoader(async (ids) =>
    byKey(await conversations.find(ids), ({ conversationId }) => conversationId),
  )

  return {
    find: async (conversationId, workspaceId) => inWorkspace(await load(conversationId), workspaceId),

    async require(conversationId, workspaceId) {
      inWorkspace(await facts.get(conversationId), workspaceId)
    },

    epochOf: async (conversationId) => (await facts.get(conversationId))?.epoch,
  }
}

export interface ConversationSummaries {
  /** Returns one summary per conversation, in the same order. Contacts are included on request. */
  of(conversations: Conversation[], options?: { contacts?: boolean }): Promise<ConversationSummary[]>
}

/**
 * Creates conversation summaries. Loads visitors, latest messages and contacts of a page with one
 * query each.
 */
export function createConversationSummaries({
  sessions,
  events,
  contactsOf,
}: {
  sessions: Pick<SessionStore, 'find'>
  events: Pick<EventStore, 'at'>
  contactsOf: ContactsOf
}): ConversationSummaries {
  return {
    async of(conversations, { contacts: withContacts = false } = {}) {
      const places = conversations.flatMap(({ conversationId, lastSequence }) =>
        lastSequence === undefined ? [] : [{ conversationId, sequence: lastSequence }],
      )
      const sessionIds = conversations.flatMap(({ lastSessionId }) => lastSessionId ?? [])
      const ids = conversations.map(({ conversationId }) => conversationId)
      const [found, latest, contacts] = await Promise.all([
        sessions.find(sessionIds),
        events.at(places),
        withContacts ? contactsOf(ids) : undefined,
      ])
      const sessionsById = byKey(found, ({ sessionId }) => sessionId)
      const latestById = byKey(latest, ({ conversationId }) => conversationId)
      return conversations.map(({ conversationId, lastSessionId }) => {
        const session = lastSessionId === undefined ? undefined : sessionsById.get(lastSessionId)
        const lastMessage = latestById.get(conversationId)
        return {
          visitor: session && toVisitor(session),
          lastMessage: lastMessage?.message && lastMessage,
          contact: contacts?.get(conversationId),
        }
      })
    },
  }
}

function toVisitor({ identity }: Pick<Session, 'identity'>): ConversationSummary['visitor'] {
  if (!identity) return { identityState: 'anonymous' }
  const { externalSubject, displayName } = identity
  return { identityState: 'verified', externalSubject, displayName }
}
