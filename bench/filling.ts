import { openDatabase } from '../core/database/database.ts'
import { operationKeys } from '../core/log-event.ts'
import { termsOf } from '../core/search/terms-model.ts'
import type { Access } from './service.ts'
import { text } from './visitors.ts'

export const perConversation = 20
const atOnce = 50
const fast = { ordered: false, writeConcern: { w: 1 } } as const

/** A conversation to fill. Those of visitors exist already. */
export interface Filled {
  conversationId: string
  sessionId: string
  /** Default: 20 messages after the first `from`, 0. */
  from?: number
  count?: number
}

export interface Filling {
  conversations: Filled[]
  /** Whether the conversations and their sessions are written too. */
  areNew: boolean
  /** Returns when the conversation with this index was written. Default: now. */
  at?(index: number): Date
  body?(): string
}

/**
 * Inserts messages with their search entries, without a core. The messages of conversations that are written
 * together are interleaved.
 */
export async function fill({ mongodbUri, database, workspaceId, siteKey }: Access, filling: Filling): Promise<void> {
  const { conversations, areNew, at = () => new Date(), body = () => text } = filling
  const opened = await openDatabase({ uri: mongodbUri, name: database, timeoutMs: 60_000 })
  const { collections } = opened
  const site = { workspaceId, connectionId: 'con_demo' }
  for (let start = 0; start < conversations.length; start += atOnce) {
    const group = conversations.slice(start, start + atOnce)
    const written = group.flatMap((conversation, index) => messagesOf(conversation, at(start + index), body))
    written.sort((one, other) => one.sequence - other.sequence)
    if (areNew) {
      const createdAt = at(start)
      await collections.conversations.insertMany(
        group.map(({ conversationId, sessionId }) => ({
          ...{ _id: conversationId, ...site, epoch: 'bench', createdAt, lastMessageAt: createdAt },
          ...{ lastSequence: perConversation, lastSession: { sequence: perConversation, sessionId } },
        })),
        fast,
      )
      await collections.sessions.insertMany(
        group.map(({ conversationId, sessionId }) => ({
          ...{ _id: sessionId, ...site, publicSiteKey: siteKey, origin: 'http://localhost:8081', conversationId },
          ...{ visitorId: `vis_${sessionId}`, clientInstanceId: sessionId, connectionVersion: 1, hasWritten: true },
          ...{ status: 'active' as const, createdAt, grantExpiresAt: createdAt, renewableUntil: createdAt },
          ...{ endsAt: createdAt, renewal: { generation: 0, previousUntil: createdAt } },
        })),
        fast,
      )
    }
    await collections.events.insertMany(written, fast)
    const entries = written.map(({ conversationId, sequence, occurredAt, message }) => ({
      ...{ _id: `${conversationId}:${sequence}`, workspaceId, at: occurredAt },
      terms: [...new Set(termsOf(message.body).map(({ term }) => term))],
    }))
    await collections.searchEntries.insertMany(entries, fast)
  }
  // Otherwise the follower of the logs would read all of them during a measurement.
  const [last] = await collections.events.find().sort({ _id: -1 }).limit(1).toArray()
  for (const _id of ['search', 'feed'])
    await collections.followers.updateOne({ _id }, { $set: { after: last!._id } }, { upsert: true })
  await opened.close()
}

function messagesOf(
  { conversationId, sessionId, from = 0, count = perConversation }: Filled,
  at: Date,
  body: () => string,
) {
  return Array.from({ length: count }, (_, index) => {
    const sequence = from + index + 1
    return {
      ...{ conversationId, sequence, type: 'message.accepted' as const, occurredAt: new Date(at.getTime() + index) },
      operationKey: operationKeys.visitorMessage(sessionId, `filled-${sequence}`),
      inputHash: 'n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg',
      message: {
        ...{
          messageId: `msg_${conversationId.slice(4)}x${sequence}`,
          clientOperationId: `filled-${sequence}`,
          sessionId,
        },
        ...{ author: { kind: 'visitor' as const }, body: body() },
        ...{ contentType: 'text' as const, state: 'queued' as const },
      },
    }
  })
}

export const newConversations = (prefix: string, count: number): Filled[] =>
  Array.from({ length: count }, (_, index) => ({
    conversationId: `cnv_${prefix}${index}`,
    sessionId: `ses_${prefix}${index}`,
  }))
