import type { Database } from '../../core/database/database.ts'
import { operationKeys } from '../../core/log/operation-keys.ts'
import type { BenchVisitor } from '../visitors.ts'

const perConversation = 20
const batch = 1_000
const body = 'Do you ship to Graz? I would like to have it there by Friday.'

export interface Filling {
  /** Total number of messages. */
  messages: number
  /** Of these, messages of the first visitor. */
  hot: number
}

/**
 * Inserts messages into the log in bulk, in the core's format: `hot` in the first visitor's conversation,
 * 20 in each other visitor's, the rest in other conversations. They are interleaved as in real use.
 */
export async function fillStore(
  { collections: { events } }: Database,
  [hotVisitor, ...visitors]: BenchVisitor[],
  { messages, hot }: Filling,
): Promise<void> {
  const others = Math.floor((messages - hot) / perConversation)
  const conversations = Array.from({ length: others }, (_, index) => visitors[index] ?? strangers(index))
  let hotSequence = 0
  const document = ({ conversationId, sessionId }: Omit<BenchVisitor, 'accessGrant'>, sequence: number) => ({
    conversationId,
    sequence,
    type: 'message.accepted' as const,
    occurredAt: new Date(),
    operationKey: operationKeys.visitorMessage(sessionId, `seed-${sequence}`),
    inputHash: 'n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg',
    message: {
      messageId: `msg_${conversationId.slice(4)}${sequence}`,
      clientOperationId: `seed-${sequence}`,
      sessionId,
      author: { kind: 'visitor' as const },
      body,
      contentType: 'text' as const,
      state: 'queued' as const,
    },
  })
  let waiting: ReturnType<typeof document>[] = []
  const write = async () => {
    // Nothing reads these before all are written, so journaling is not awaited.
    if (waiting.length > 0) await events.insertMany(waiting, { ordered: false, writeConcern: { w: 1 } })
    waiting = []
  }
  for (let sequence = 1; sequence <= perConversation; sequence += 1) {
    for (const [index, conversation] of conversations.entries()) {
      waiting.push(document(conversation, sequence))
      const due = Math.ceil((hot * ((sequence - 1) * others + index + 1)) / (perConversation * others))
      while (hotVisitor && hotSequence < due) waiting.push(document(hotVisitor, ++hotSequence))
      if (waiting.length >= batch) await write()
    }
  }
  await write()
}

const strangers = (index: number) => ({ conversationId: `cnv_filling${index}`, sessionId: `ses_filling${index}` })
