import type { Collection } from 'mongodb'

/** Maximum number of operation ids that a document stores. */
const operationsKept = 32

/** A document that stores the ids of the operations that changed it. */
export interface RecordsOperations {
  /** Ids of the last `operationsKept` operations, oldest first. */
  operations?: string[]
}

/**
 * Filter of a write that must take effect once per operation. The same write must store the
 * operation with `recording`. If the operation is repeated after a crash, the write then does not
 * undo later changes.
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
