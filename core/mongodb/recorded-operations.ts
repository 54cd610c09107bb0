import type { Collection } from 'mongodb'

const operationsKept = 32

export interface RecordsOperations {
  /** Ids of the last operations that changed the document, oldest first. */
  operations?: string[]
}

/**
 * Filter of a write that must take effect once per operation. The same write stores the operation with
 * `recording`. So a repeat after a crash does not undo later changes.
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
