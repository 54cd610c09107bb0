import type { Collection, Filter } from 'mongodb'
import { hasDocument } from './with-id.ts'

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

export const isRecorded = <D extends RecordsOperations & { _id: string }>(
  documents: Collection<D>,
  id: string,
  operation: string,
): Promise<boolean> => hasDocument(documents, { _id: id, operations: operation } as Filter<D>)
