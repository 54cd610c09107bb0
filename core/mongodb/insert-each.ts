import {
  type Collection,
  type Document,
  MongoBulkWriteError,
  type MongoServerError,
  type OptionalUnlessRequiredId,
  type WriteConcernSettings,
} from 'mongodb'
import { duplicateKey, isDuplicateKey, unlessDuplicate } from './faults.ts'

type InsertOptions = { writeConcern?: WriteConcernSettings }

/**
 * Inserts documents with one call. Returns the rejected ones by their indexes. Other errors, and a document that
 * is alone and rejected for another reason than a unique key, reject the call. It is then unknown what was written.
 */
export async function insertAll<T extends Document>(
  collection: Collection<T>,
  documents: T[],
  options: InsertOptions = {},
) {
  const given = documents as OptionalUnlessRequiredId<T>[]
  const rejected = new Map<number, { code: number; errmsg: string | undefined; error: unknown }>()
  try {
    // `insertOne` costs the driver and the database less than `insertMany`.
    if (given.length === 1) await collection.insertOne(given[0]!, options)
    else await collection.insertMany(given, { ...options, ordered: false })
  } catch (error) {
    const isBulk = error instanceof MongoBulkWriteError
    const { errmsg } = error as MongoServerError
    const single = isDuplicateKey(error) ? [{ index: 0, code: duplicateKey, errmsg }] : []
    const failures = isBulk ? [error.writeErrors].flat() : single
    // The driver also reports a broken connection as a failed write. In that case no outcome is known.
    const isUnknown = failures.length === 0 || (isBulk && error.result.getWriteConcernError() !== undefined)
    if (isUnknown) throw error
    for (const { index, code, errmsg } of failures) rejected.set(index, { code, errmsg, error })
  }
  return rejected
}

/**
 * Inserts documents with one call. Results have the order of the documents: false if a unique key was taken,
 * rejected if the database rejected the document for another reason. Errors: those of `insertAll`.
 */
export async function insertEach<T extends Document>(
  collection: Collection<T>,
  documents: T[],
  options?: InsertOptions,
): Promise<PromiseSettledResult<boolean>[]> {
  const rejected = await insertAll(collection, documents, options)
  return documents.map((_, index) => {
    const rejection = rejected.get(index)
    if (rejection && rejection.code !== duplicateKey) return { status: 'rejected', reason: rejection.error }
    return { status: 'fulfilled', value: rejection === undefined }
  })
}

/** Inserts a document. Returns false if one of its unique keys is taken. */
export async function insertOnce<T extends Document>(collection: Collection<T>, document: T): Promise<boolean> {
  return (await unlessDuplicate(collection.insertOne(document as OptionalUnlessRequiredId<T>))) !== undefined
}
