import type { Database } from '../../core/database/database.ts'
import { operationKeys } from '../../core/log-event.ts'
import type { BenchVisitor } from '../visitors.ts'

const perConversation = 20
const batch = 1_000
const body = 'Do you ship to Graz? I would like to have it there by Friday.'

export interface Filling {
  /** Total number of messages. */
  messages: number
  /** Number of messages in the first visitor's conversation, which is the largest. */
  largest: number
}

/**
 * Inserts messages into the event log in bulk, in the core's format. The first visitor's
 * conversation gets `largest` messages, every other conversation gets 20. Conversations without a
 * visitor get generated ids. Messages of all conversations are interleaved, as in real use.
 */
export async function fillStore(
  { collections: { events } }: Database,
  [firstVisitor, ...visitors]: BenchVisitor[],
  { messages, largest }: Filling,
): Promise<void> {
  const others = Math.floor((messages - largest) / perConversation)
  const conversations = Array.from({ length: others }, (_, index) => visitors[index] ?? strangers(index))
  let largestSequence = 0
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
    // The bench reads no message before all are written, so the insert does not wait for the
    // journal.
    if (waiting.length > 0) await events.insertMany(waiting, { ordered: false, writeConcern: { w: 1 } })
    waiting = []
  }
  for (let sequence = 1; sequence <= perConversation; sequence += 1) {
    for (const [index, conversation] of conversations.entries()) {
      waiting.push(document(conversation, sequence))
      const due = Math.ceil((largest * ((sequence - 1) * others + index + 1)) / (perConversation * others))
      while (firstVisitor && largestSequence < due) waiting.push(document(firstVisitor, ++largestSequence))
      if (waiting.length >= batch) await write()
    }
  }
  await write()
}

const strangers = (index: number) => ({ conversationId: `cnv_filling${index}`, sessionId: `ses_filling${index}` })
