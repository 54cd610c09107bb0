import type { Collection } from 'mongodb'

/** Number of operations that a document keeps. */
const operationsKept = 32

/** A document with the ids of the operations that changed it. */
export interface RecordsOperations {
  /** Oldest first. */
  operations?: string[]
}

/**
 * Filter and update of a write that takes effect once per operation. The write itself records the
 * operation. So a repeat after a crash does not undo later changes.
 */
export const unlessRecorded = (operation: string) => ({ operations: { $ne: operation } })
export const recording = (operation: string) => ({
  operations: { $each: [operation], $slice: -operationsKept },
})

export async function isRecorded<D extends RecordsOperations & { _id: string }>(
  documents: Collection<D>,
  id: string,
  operation: string,
): Promise<boolean> {
  const found = await (documents as unknown as Collection<RecordsOperations & { _id: string }>).findOne(
    { _id: id, operations: operation },
    { projection: { _id: 1 } },
  )
  return found !== null
}
