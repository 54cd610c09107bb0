import { type Collection, type Document, MongoBulkWriteError, type OptionalUnlessRequiredId } from 'mongodb'
import { duplicateKey } from './faults.ts'

interface Pending<T> {
  document: T
  outcome: PromiseWithResolvers<boolean>
}

/**
 * Inserts documents, many at once: what comes while an insert is on its way is the next one, without a timer. False for a document
 * whose place in a unique index is taken. Errors: one that concerns a document is its own; any other is everybody's.
 */
export function createGroupedInserts<T extends Document>(
  collection: Collection<T>,
  { maxDocuments = 200, maxInFlight = 2 }: { maxDocuments?: number; maxInFlight?: number } = {},
): (document: T) => Promise<boolean> {
  let waiting: Pending<T>[] = []
  let inFlight = 0

  function start() {
    while (inFlight < maxInFlight && waiting.length > 0) {
      const batch = waiting.slice(0, maxDocuments)
      waiting = waiting.slice(maxDocuments)
      inFlight += 1
      void insert(batch)
    }
  }

  async function insert(batch: Pending<T>[]) {
    try {
      const documents = batch.map(({ document }) => document as OptionalUnlessRequiredId<T>)
      await collection.insertMany(documents, { ordered: false })
      for (const { outcome } of batch) outcome.resolve(true)
    } catch (error) {
      settleFailed(batch, error)
    } finally {
      inFlight -= 1
      start()
    }
  }

  return (document) => {
    const outcome = Promise.withResolvers<boolean>()
    waiting.push({ document, outcome })
    // Let everybody who is about to insert come along.
    queueMicrotask(start)
    return outcome.promise
  }
}

function settleFailed<T>(batch: Pending<T>[], error: unknown): void {
  const failures = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : []
  const isWhole = failures.length === 0 || (error as MongoBulkWriteError).result.getWriteConcernError() !== undefined
  const byIndex = new Map(failures.map((failure) => [failure.index, failure]))
  for (const [index, { outcome }] of batch.entries()) {
    const failure = byIndex.get(index)
    if (isWhole) outcome.reject(error)
    else if (failure === undefined) outcome.resolve(true)
    else if (failure.code === duplicateKey) outcome.resolve(false)
    else outcome.reject(error)
  }
}
