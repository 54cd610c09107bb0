/** The part of the collection of erasures that other stores read. */
export interface Erasures {
  find(
    filter: { 'traces.visitorIds': { $in: string[] }; isSwept: { $exists: false } },
    options: { projection: { _id: 1 } },
  ): { toArray(): Promise<{ _id: string }[]> }
}

/**
 * Returns the ids of unfinished erasures of any of these browsers and verified visitors. New
 * sessions, and new conversations of verified visitors, store the returned ids, so that these
 * erasures do not remove them. Erasures that remove nothing any more are not returned.
 */
export async function openErasures(erasures: Erasures, visitorIds: (string | undefined)[]): Promise<string[]> {
  const ids = visitorIds.filter((id) => id !== undefined)
  const unfinished = { 'traces.visitorIds': { $in: ids }, isSwept: { $exists: false } } as const
  const found = await erasures.find(unfinished, { projection: { _id: 1 } }).toArray()
  return found.map(({ _id }) => _id)
}
