/** Matches documents that no erasure, deletion or retention has hidden. */
export const notErasing = { erasing: { $exists: false } } as const
