/** Matches documents that no erasure, deletion or retention has hidden. */
export const notErasing = { erasing: { $exists: false } } as const

/** Matches objects that are not being deleted. */
export const notDeleted = { deleted: { $exists: false } } as const
