import type { Bus } from '../bus.ts'
import type { ConversationStore } from '../conversations/conversation-store.ts'
import { createLiveCache, type LiveCache } from '../log/live-cache.ts'
import type { Session, SessionStore } from '../visitors/session-store.ts'
import type { Connection, Installation, WorkspaceStore } from './workspace-store.ts'

/** Cached authorization data, at most a second old. */
export interface Directory {
  sessions: LiveCache<Session>
  connections: LiveCache<Connection>
  installations: LiveCache<Installation>
  conversations: LiveCache<ConversationFacts>
}

/** The immutable fields of a conversation. */
export interface ConversationFacts {
  workspaceId: string
  epoch: string
}

export function createDirectory(dependencies: {
  sessionStore: Pick<SessionStore, 'find'>
  workspaceStore: Pick<WorkspaceStore, 'findConnections' | 'findInstallations'>
  conversationStore: Pick<ConversationStore, 'find'>
  bus: Bus
  isCurrent: () => boolean
}): Directory {
  const { sessionStore, workspaceStore, conversationStore, bus, isCurrent } = dependencies
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

  bus.on('changed', (ids) => {
    // Invalidates in every cache, because a site key has no prefix that identifies its kind.
    for (const cache of all) for (const id of ids) cache.invalidate(id)
  })
  bus.on('gap', () => {
    for (const cache of all) cache.clear()
  })

  return { sessions, connections, installations, conversations }
}

function byKey<V>(values: V[], key: (value: V) => string): Map<string, V> {
  return new Map(values.map((value) => [key(value), value]))
}
