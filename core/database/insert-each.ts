import { type Collection, type Document, MongoBulkWriteError, type OptionalUnlessRequiredId } from 'mongodb'
import { duplicateKey } from './faults.ts'

/**
 * Inserts documents with one call. Returns per document whether its unique keys were free. An error
 * about one document rejects that one; any other error rejects all.
 */
export async function insertEach<T extends Document>(
  collection: Collection<T>,
  documents: T[],
): Promise<PromiseSettledResult<boolean>[]> {
  try {
    await collection.insertMany(documents as OptionalUnlessRequiredId<T>[], { ordered: false })
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
