import { openDatabase } from '../../core/database/database.ts'
import { operationKeys } from '../../core/log-event.ts'
import { skipSearchCatchUp, writeSearchEntries } from '../search-entries.ts'

export const perConversation = 20
/** Age of the messages in days. */
const ageDays = 100
const conversationsAtOnce = 50

/** Inserts old conversations of the demo with their sessions and search entries, in the core's format. */
export async function writeOldConversations(mongodbUri: string, count: number): Promise<void> {
  const database = await openDatabase({ uri: mongodbUri, name: 'service', timeoutMs: 60_000 })
  const { conversations, sessions, events } = database.collections
  const at = new Date(Date.now() - ageDays * 86_400_000)
  const demo = { workspaceId: 'ws_demo', connectionId: 'con_demo' }
  const fast = { ordered: false, writeConcern: { w: 1 } } as const
  for (let start = 0; start < count; start += conversationsAtOnce) {
    const indexes = Array.from({ length: Math.min(conversationsAtOnce, count - start) }, (_, index) => start + index)
    await conversations.insertMany(
      indexes.map((index) => ({
        _id: `cnv_old${index}`,
        ...demo,
        epoch: 'old',
        createdAt: at,
        lastMessageAt: at,
        lastSequence: perConversation,
        lastSession: { sequence: perConversation, sessionId: `ses_old${index}` },
      })),
      fast,
    )
    await sessions.insertMany(
      indexes.map((index) => ({
        _id: `ses_old${index}`,
        ...demo,
        publicSiteKey: 'pk_demo',
        origin: 'http://localhost:8081',
        conversationId: `cnv_old${index}`,
        visitorId: `vis_old${index}`,
        clientInstanceId: `old${index}`,
        connectionVersion: 1,
        hasWritten: true,
        status: 'active' as const,
        createdAt: at,
        grantExpiresAt: at,
        renewableUntil: at,
        endsAt: at,
        renewal: { generation: 0, previousUntil: at },
      })),
      fast,
    )
    const written = indexes.flatMap((index) =>
      Array.from({ length: perConversation }, (_, place) => ({
        conversationId: `cnv_old${index}`,
        sequence: place + 1,
        type: 'message.accepted' as const,
        occurredAt: at,
        operationKey: operationKeys.visitorMessage(`ses_old${index}`, `old-${place}`),
        message: {
          messageId: `msg_old${index}x${place}`,
          clientOperationId: `old-${place}`,
          sessionId: `ses_old${index}`,
          author: { kind: 'visitor' as const },
          body: 'Do you ship to Graz? I would like to have it there by Friday.',
          contentType: 'text' as const,
          state: 'queued' as const,
        },
      })),
    )
    await events.insertMany(written, fast)
    await writeSearchEntries(database, demo.workspaceId, written)
  }
  await skipSearchCatchUp(database)
  await database.close()
}
