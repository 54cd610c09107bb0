import {
  type Collection,
  type Document,
  MongoBulkWriteError,
  type OptionalUnlessRequiredId,
  type WriteConcernSettings,
} from 'mongodb'
import { duplicateKey, unlessDuplicate } from './faults.ts'

/**
 * Inserts documents with one call. Results have the order of the documents: false if a unique key was taken,
 * rejected if the database rejected the document for another reason. Other errors, and a rejected document that
 * is alone, reject the call.
 */
export async function insertEach<T extends Document>(
  collection: Collection<T>,
  documents: T[],
  options: { writeConcern?: WriteConcernSettings } = {},
): Promise<PromiseSettledResult<boolean>[]> {
  const [first, ...others] = documents
  // `insertOne` costs the driver and the database less than `insertMany`.
  if (first && others.length === 0) {
    return [{ status: 'fulfilled', value: await insertOnce(collection, first, options) }]
  }
  try {
    await collection.insertMany(documents as OptionalUnlessRequiredId<T>[], { ...options, ordered: false })
    return documents.map(() => ({ status: 'fulfilled', value: true }))
  } catch (error) {
    const failures = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : []
    const concernsAll =
      failures.length === 0 || (error as MongoBulkWriteError).result.getWriteConcernError() !== undefined
    if (concernsAll) throw error
    const byIndex = new Map(failures.map((failure) => [failure.index, failure]))
    return documents.map((_, index) => {
      const failure = byIndex.get(index)
      if (failure !== undefined && failure.code !== duplicateKey) return { status: 'rejected', reason: error }
      return { status: 'fulfilled', value: failure === undefined }
    })
  }
}

/** Inserts a document. Returns false if one of its unique keys is taken. */
export async function insertOnce<T extends Document>(
  collection: Collection<T>,
  document: T,
  options: { writeConcern?: WriteConcernSettings } = {},
): Promise<boolean> {
  const inserted = await unlessDuplicate(collection.insertOne(document as OptionalUnlessRequiredId<T>, options))
  return inserted !== undefined
}
