import type { Collection } from 'mongodb'

/** How many operations a document remembers. */
const operationsKept = 32

/** A document that remembers which operations changed it. */
export interface RecordsOperations {
  /** The latest last. */
  operations?: string[]
}

/**
 * Filter and change of a write that takes effect once for each operation. The operation is recorded by the write itself, so
 * a repeat after the death of its process does not undo what others changed in the meantime.
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
