import type { Collection, Document, Filter, WithId } from 'mongodb'

/** Documents that are removed with their owner. */
export interface Part {
  /** In the metric of removed data. */
  kind?: string
  /** Removes at most `limit` documents. Returns how many it found; 0 when none is left. Can be repeated. */
  remove(limit: number): Promise<number>
}

export const idOnly = { projection: { _id: 1 } } as const
export const ids = (found: { _id: string }[]) => found.map(({ _id }) => _id)

/** For a bounded number of documents, or references. */
export const atOnce = (remove: () => Promise<unknown>): Part => ({
  async remove() {
    await remove()
    return 0
  },
})

/** The documents that match. `act` removes them; default: deletes them. */
export function documents<D extends Document>(
  collection: Collection<D>,
  filter: Filter<D>,
  { kind, fields, act }: { kind?: string; fields?: Document; act?: (found: WithId<D>[]) => Promise<unknown> } = {},
): Part {
  const remove = (found: WithId<D>[]) =>
    collection.deleteMany({ _id: { $in: found.map(({ _id }) => _id) } } as Filter<D>)
  return {
    ...(kind && { kind }),
    async remove(limit) {
      const found = await collection
        .find(filter, { projection: fields ?? idOnly.projection })
        .limit(limit)
        .toArray()
      if (found.length > 0) await (act ?? remove)(found)
      return found.length
    },
  }
}
