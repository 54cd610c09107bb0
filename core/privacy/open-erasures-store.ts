import type { Collection } from 'mongodb'
import type { ErasureDocument } from './erasure-store.ts'

/**
 * Ids of the erasures under way of any of these browsers and subjects. What begins now begins after them, and they leave it
 * alone. A finished erasure names nobody.
 */
export async function openErasures(
  erasures: Collection<ErasureDocument>,
  visitorIds: (string | undefined)[],
): Promise<string[]> {
  const ids = visitorIds.filter((id) => id !== undefined)
  const found = await erasures.find({ 'traces.visitorIds': { $in: ids } }, { projection: { _id: 1 } }).toArray()
  return found.map(({ _id }) => _id)
}
