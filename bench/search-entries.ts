import type { Database } from '../core/database/database.ts'
import type { LogEvent } from '../core/log-event.ts'
import { createSearchEntryStore } from '../core/search/search-entry-store.ts'
import { termsOf } from '../core/search/terms-model.ts'

/** Inserts the search entries of messages that were inserted without a core. */
export async function writeSearchEntries(
  { collections }: Database,
  workspaceId: string,
  written: Pick<LogEvent, 'conversationId' | 'sequence' | 'occurredAt' | 'message'>[],
): Promise<void> {
  await createSearchEntryStore(collections).insert(
    written.map(({ conversationId, sequence, occurredAt, message }) => ({
      source: { kind: 'message', conversationId, sequence },
      workspaceId,
      at: occurredAt,
      terms: [...new Set(termsOf(message!.body).map(({ term }) => term))],
    })),
  )
}

/** Moves the catch-up of the search index behind all events, so that it does not read them during a measurement. */
export async function skipSearchCatchUp({ collections: { events, followers } }: Database): Promise<void> {
  const [last] = await events.find().sort({ _id: -1 }).limit(1).toArray()
  await followers.updateOne({ _id: 'search' }, { $set: { after: last!._id } }, { upsert: true })
}
