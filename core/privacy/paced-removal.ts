import { setTimeout as delay } from 'node:timers/promises'
import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { ConsentStore } from '../visitors/consent-store.ts'
import type { Session } from '../visitors/model.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataRemoval } from './data-removal-store.ts'

/**
 * Removes data with pauses, so that database calls for messages are not delayed. Calls can be
 * repeated.
 */
export interface PacedRemoval {
  /** Removes conversations with everything that belongs to them. Their leads stay. */
  conversations(conversationIds: string[]): Promise<void>
  /**
   * Removes a session but not its conversation. `lastSessionId` is another session of the
   * conversation, which is kept. It is undefined if the conversation is not stored.
   */
  session(session: Session, lastSessionId: string | undefined): Promise<void>
  leads(leadIds: string[]): Promise<void>
}

/** Maximum number of documents that one call of the database removes. */
const chunk = 100
/**
 * A pause lasts this many times as long as the call before it. So the calls take a seventh of
 * the time.
 */
const pauseFactor = 6
const maxPauseMs = 500

export function createPacedRemoval(dependencies: {
  data: DataRemoval
  factStore: Pick<ConversationFactsStore, 'sessionsOf'>
  consents: Pick<ConsentStore, 'keepLatest'>
  files: Pick<ScreenshotStore, 'delete'>
  metrics: CoreMetrics
}): PacedRemoval {
  const { data, factStore, consents, files, metrics } = dependencies

  async function paced<T>(call: () => Promise<T>): Promise<T> {
    const began = performance.now()
    const result = await call()
    await delay(Math.min((performance.now() - began) * pauseFactor, maxPauseMs))
    return result
  }

  async function inChunks(kind: string, remove: (limit: number) => Promise<number>) {
    for (let removed = chunk; removed > 0; ) {
      removed = await paced(() => remove(chunk))
      metrics.removed.inc({ kind }, removed)
    }
  }

  async function removeSessions(sessions: Session[]) {
    const ids = sessions.map(({ sessionId }) => sessionId)
    const commands = await paced(() => data.commandsOf(ids))
    for (const { fileIds } of commands) for (const fileId of fileIds) await paced(() => files.delete(fileId))
    await paced(() => data.removeCommands(commands.map(({ commandId }) => commandId)))
    for (const session of sessions) {
      await paced(() => consents.keepLatest(session, ids))
      await paced(() => data.keepLink(session))
    }
    metrics.removed.inc({ kind: 'sessions' }, await paced(() => data.removeSessions(sessions)))
  }

  return {
    async conversations(conversationIds) {
      await inChunks('events', (limit) => data.removeEvents(conversationIds, limit))
      await inChunks('search_entries', (limit) => data.removeSearchEntries(conversationIds, limit))
      const sessions = await paced(() => factStore.sessionsOf(conversationIds))
      await data.detachLeads(sessions)
      for (let start = 0; start < sessions.length; start += chunk)
        await removeSessions(sessions.slice(start, start + chunk))
      const removed = await paced(() => data.removeConversations(conversationIds))
      metrics.removed.inc({ kind: 'conversations' }, removed)
    },

    async session(session, lastSessionId) {
      if (lastSessionId !== undefined) await data.detachSession(session, lastSessionId)
      await removeSessions([session])
    },

    async leads(leadIds) {
      await inChunks('deliveries', (limit) => data.removeDeliveriesOf(leadIds, limit))
      metrics.removed.inc({ kind: 'leads' }, await paced(() => data.removeLeads(leadIds)))
    },
  }
}
