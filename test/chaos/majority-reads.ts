import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { EventDocument } from '../../core/log/event-store.ts'
import type { ClientContext } from './client-context.ts'

/**
 * Reads every acknowledged message with majority read concern, right after its acknowledgement. A
 * message that a new primary could roll back is missing in such a read.
 */
export async function checkMajorityReads({ recorder, draining }: ClientContext, db: Db): Promise<void> {
  const events = db.collection<EventDocument>('events')
  for (let checked = 0; !draining.aborted; await delay(20)) {
    const { length } = recorder.entries
    const acknowledged = recorder.entries.slice(checked, length).filter((entry) => entry.kind === 'acknowledged')
    if (acknowledged.length === 0) continue
    const conversations = acknowledged.map(({ conversationId, sequence }) => ({ conversationId, sequence }))
    // The read fails during an outage. The next iteration retries it.
    const found = await events
      .find({ $or: conversations }, { readConcern: 'majority', projection: { 'message.messageId': 1 } })
      .toArray()
      .catch(() => undefined)
    if (!found) continue
    checked = length
    const ids = new Set(found.map(({ message }) => message?.messageId))
    for (const { operation, messageId } of acknowledged)
      if (!ids.has(messageId)) recorder.add({ kind: 'not in majority', operation })
  }
}
