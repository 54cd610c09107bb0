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
  /** A second run must have the same effect and match the same document. */
  update: UpdateFilter<T>
}

/**
 * Updates at most one document per update. If not all updates of the common call match, each runs again in a call
 * of its own. A result is true if a document matched, and rejected if the database rejected the update. Other
 * errors of the common call reject the whole call.
 */
export async function updateEach<T extends Document>(
  collection: Collection<T>,
  updates: DocumentUpdate<T>[],
): Promise<PromiseSettledResult<boolean>[]> {
  if (updates.length > 1 && (await haveAllMatched(collection, updates)))
    return updates.map(() => ({ status: 'fulfilled', value: true }))
  // The database returns how many updates matched, but not which ones.
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
    // An update was rejected, for example because it is too large.
    if (error instanceof MongoBulkWriteError || error instanceof MongoAPIError) return false
    throw error
  }
}
