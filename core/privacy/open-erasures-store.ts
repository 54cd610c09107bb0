import type { Collection } from 'mongodb'
import type { ErasureDocument } from './erasure-store.ts'

/**
 * Ids of the erasures under way for any of these browsers and subjects. A session or subject stores
 * them when it begins, and these erasures skip it. A finished erasure has no browsers and subjects.
 */
export async function openErasures(
  erasures: Collection<ErasureDocument>,
  visitorIds: (string | undefined)[],
): Promise<string[]> {
  const ids = visitorIds.filter((id) => id !== undefined)
  const found = await erasures.find({ 'traces.visitorIds': { $in: ids } }, { projection: { _id: 1 } }).toArray()
  return found.map(({ _id }) => _id)
}
