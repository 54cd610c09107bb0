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
