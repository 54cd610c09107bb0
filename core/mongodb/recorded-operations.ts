import type { Collection } from 'mongodb'

const operationsKept = 32

export interface RecordsOperations {
  /** The last ids of operations that changed the document. */
  operations?: string[]
}

/**
 * Filter of a write that takes effect once per operation, which the same write stores with `recording`. So a
 * repeat after a crash does not undo later changes.
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
