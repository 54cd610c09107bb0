import { invalid } from './errors.ts'

/** The last entry of a page that is sorted by time and id. */
interface PageEnd {
  at: Date
  id: string
}

/**
 * Shortens the result of a query for `limit + 1` entries to a page of `limit` entries or
 * `pageMaxBytes`. Adds the token of the next page, if there is one.
 */
export function cutPage<T>(
  found: T[],
  limit: number,
  endOf: (last: T) => PageEnd,
): { page: T[]; nextPageToken?: string } {
  const page = found.slice(0, Math.min(limit, countFitting(found)))
  const last = page.at(-1)
  if (found.length <= page.length || last === undefined) return { page }
  return { page, nextPageToken: pageTokenOf(endOf(last)) }
}

/** Maximum size of the entries of a page, as JSON. A larger entry is a page of its own. */
const pageMaxBytes = 262_144

/** Returns how many of the first entries fit into a page, at least one. */
export function countFitting(entries: readonly unknown[]): number {
  let bytes = 0
  const tooLarge = entries.findIndex((entry, index) => {
    bytes += Buffer.byteLength(JSON.stringify(entry))
    return index > 0 && bytes > pageMaxBytes
  })
  return tooLarge === -1 ? entries.length : tooLarge
}

export function pageTokenOf({ at, id }: PageEnd): string {
  return Buffer.from(`${at.getTime()} ${id}`).toString('base64url')
}

/**
 * Returns the position that a page token contains. Errors: `ValidationFailed` for an invalid token.
 */
export function readPageToken(token: string): PageEnd {
  const [time = '', id] = Buffer.from(token, 'base64url').toString('utf8').split(' ')
  if (!/^\d{1,15}$/.test(time) || !id) {
    throw invalid('/pageToken', 'format')
  }
  return { at: new Date(Number(time)), id }
}
