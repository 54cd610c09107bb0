import { createLiveCache, type LiveCache } from '../log/live-cache.ts'
import type { ConversationStore } from '../store/conversations.ts'
import type { Session, SessionStore } from '../store/sessions.ts'
import type { Connection, Installation, WorkspaceStore } from '../store/workspaces.ts'

/** What every request is judged by, as it was at most a second ago. */
export interface Directory {
  sessions: LiveCache<Session>
  connections: LiveCache<Connection>
  installations: LiveCache<Installation>
  conversations: LiveCache<ConversationFacts>
  /** These ids' state changed somewhere. */
  changed(ids: string[]): void
  /** Changes may have been missed. */
  forgetAll(): void
}

/** What never changes of a conversation, as long as there is one. */
export interface ConversationFacts {
  workspaceId: string
  epoch: string
}

export function createDirectory(dependencies: {
  sessionStore: Pick<SessionStore, 'find'>
  workspaceStore: Pick<WorkspaceStore, 'findConnections' | 'findInstallations'>
  conversationStore: Pick<ConversationStore, 'find'>
  isCurrent: () => boolean
}): Directory {
  const { sessionStore, workspaceStore, conversationStore, isCurrent } = dependencies
  const sessions = createLiveCache({
    isCurrent,
    maxEntries: 100_000,
    loadMany: async (ids) => byKey(await sessionStore.find(ids), ({ sessionId }) => sessionId),
  })
  const connections = createLiveCache({
    isCurrent,
    maxEntries: 10_000,
    loadMany: async (ids) => byKey(await workspaceStore.findConnections(ids), ({ connectionId }) => connectionId),
  })
  const installations = createLiveCache({
    isCurrent,
    maxEntries: 10_000,
    loadMany: async (keys) => byKey(await workspaceStore.findInstallations(keys), ({ publicSiteKey }) => publicSiteKey),
  })
  const conversations = createLiveCache<ConversationFacts>({
    isCurrent,
    maxEntries: 100_000,
    loadMany: async (ids) =>
      new Map(
        (await conversationStore.find(ids)).map(({ conversationId, workspaceId, epoch }) => [
          conversationId,
          { workspaceId, epoch },
        ]),
      ),
  })
  const all = [sessions, connections, installations, conversations]

  return {
    sessions,
    connections,
    installations,
    conversations,
    changed(ids) {
      // An id names one kind of thing only, whatever its prefix: site keys are not always ours to choose.
      for (const cache of all) for (const id of ids) cache.invalidate(id)
    },
    forgetAll() {
      for (const cache of all) cache.clear()
    },
  }
}

function byKey<V>(values: V[], key: (value: V) => string): Map<string, V> {
  return new Map(values.map((value) => [key(value), value]))
}
