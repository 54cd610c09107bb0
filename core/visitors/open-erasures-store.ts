/** The part of the collection of erasures that other stores read. */
export interface Erasures {
  find(
    filter: { 'traces.visitorIds': { $in: string[] } },
    options: { projection: { _id: 1 } },
  ): { toArray(): Promise<{ _id: string }[]> }
}

/**
 * Returns the ids of unfinished erasures of any of these browsers and verified visitors. New
 * sessions, and new conversations of verified visitors, store the returned ids, so that these
 * erasures do not remove them. Finished erasures are not returned, because their records have no
 * ids of visitors.
 */
export async function openErasures(erasures: Erasures, visitorIds: (string | undefined)[]): Promise<string[]> {
  const ids = visitorIds.filter((id) => id !== undefined)
  const found = await erasures.find({ 'traces.visitorIds': { $in: ids } }, { projection: { _id: 1 } }).toArray()
  return found.map(({ _id }) => _id)
}
