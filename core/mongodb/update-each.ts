import {
  type Collection,
  type Document,
  type Filter,
  MongoAPIError,
  MongoBulkWriteError,
  type UpdateFilter,
} from 'mongodb'

export interface DocumentUpdate<T extends Document> {
  filter: Filter<T>
  /** Must be repeatable: a second run has the same effect and matches the same document. */
  update: UpdateFilter<T>
}

/**
 * Updates at most one document per update. Makes one database call if every update matches a
 * document. Otherwise runs each update again in its own call. The results have the order of the
 * updates. A result is true if a document matched. If the database rejects an update, only the
 * result of that update is rejected. Any other error of the common database call rejects the whole
 * call.
 */
export async function updateEach<T extends Document>(
  collection: Collection<T>,
  updates: DocumentUpdate<T>[],
): Promise<PromiseSettledResult<boolean>[]> {
  if (updates.length > 1 && (await haveAllMatched(collection, updates)))
    return updates.map(() => ({ status: 'fulfilled', value: true }))
  // The database returns how many updates matched, but not which ones. So each update runs again.
  return Promise.allSettled(
    updates.map(async ({ filter, update }) => (await collection.updateOne(filter, update)).matchedCount === 1),
  )
}

async function haveAllMatched<T extends Document>(collection: Collection<T>, updates: DocumentUpdate<T>[]) {
  try {
    const { matchedCount } = await collection.bulkWrite(
      updates.map((updateOne) => ({ updateOne })),
      { ordered: false },
    )
    return matchedCount === updates.length
  } catch (error) {
    // The database or the driver rejected an update, for example because the update is too large.
    if (error instanceof MongoBulkWriteError || error instanceof MongoAPIError) return false
    throw error
  }
}
