import {
  type Collection,
  type Document,
  MongoBulkWriteError,
  type OptionalUnlessRequiredId,
  type WriteConcernSettings,
} from 'mongodb'
import { duplicateKey, isDuplicateKey } from './faults.ts'

/**
 * Inserts documents with one call. The results have the order of the documents. A result is true if
 * its document was inserted, and false if one of its unique keys was taken. If the database rejects
 * a document for another reason, only the result of that document is rejected. Any other error
 * rejects the whole call. If there is only one document, its rejection also rejects the whole call.
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

/** Inserts a document. Returns false and changes nothing if one of its unique keys is taken. */
export async function insertOnce<T extends Document>(
  collection: Collection<T>,
  document: T,
  options: { writeConcern?: WriteConcernSettings } = {},
): Promise<boolean> {
  try {
    await collection.insertOne(document as OptionalUnlessRequiredId<T>, options)
    return true
  } catch (error) {
    if (isDuplicateKey(error)) return false
    throw error
  }
}
