/** The part of the collection of erasures that other stores read. */
export interface Erasures {
  find(
    filter: { 'traces.visitorIds': { $in: string[] } },
    options: { projection: { _id: 1 } },
  ): { toArray(): Promise<{ _id: string }[]> }
}

/**
 * Returns the ids of unfinished erasures of any of these browsers and verified visitors. New
 * sessions and the conversations of verified visitors store these ids, and these erasures then skip
 * them. A finished erasure is not found, because its record has no ids of visitors.
 */
export async function openErasures(erasures: Erasures, visitorIds: (string | undefined)[]): Promise<string[]> {
  const ids = visitorIds.filter((id) => id !== undefined)
  const found = await erasures.find({ 'traces.visitorIds': { $in: ids } }, { projection: { _id: 1 } }).toArray()
  return found.map(({ _id }) => _id)
}
