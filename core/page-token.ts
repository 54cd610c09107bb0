import { createHash } from 'node:crypto'
import type { Collection, Document, Filter, WithId } from 'mongodb'
import { invalid } from './errors.ts'
import { field, integer, validate } from './rules.ts'

/** A place in a list that is ordered by time. */
export interface PageEnd {
  at: Date
  id: string
}

/** Shortens the result of a query for `limit + 1` entries to a page of `limit` entries or `pageMaxBytes`. */
export function cutPage<T>(found: T[], limit: number, list: string, endOf: (last: T) => PageEnd) {
  const page = found.slice(0, Math.min(limit, countFitting(found)))
  const last = page.at(-1)
  if (found.length <= page.length || last === undefined) return { page }
  return { page, nextPageToken: pageTokenOf(list, endOf(last)) }
}

/** Reads a page of documents, newest first by the time in the field `by`. Errors: `ValidationFailed`. */
export async function readPage<D extends { _id: string }>(
  collection: Collection<D>,
  filter: Filter<D>,
  { list, by, max, limit = max, pageToken, projection }: ListOf<D>,
) {
  validate(field('/limit', limit, integer(1, max)))
  const end = readPageToken(list, pageToken)
  const older = end && { $or: [{ [by]: { $lt: end.at } }, { [by]: end.at, _id: { $lt: end.id } }] }
  const found = await collection
    .find({ $and: [filter, older ?? {}] } as Filter<D>, { projection })
    .sort({ [by]: -1, _id: -1 })
    .limit(limit + 1)
    .toArray()
  return cutPage(found, limit, list, (last) => ({ at: last[by as keyof WithId<D>] as Date, id: String(last._id) }))
}

/** Asks for a page. Without a token, for the first one. */
export interface PageRequest {
  limit?: number
  pageToken?: string
}

interface ListOf<D> extends PageRequest {
  /** Names the list, its order and its workspace. */
  list: string
  by: keyof D & string
  max: number
  projection?: Document
}

/** Maximum size of the entries as JSON. A larger entry is a page of its own. */
const pageMaxBytes = 262_144

const jsonBytes = (entry: unknown) => Buffer.byteLength(JSON.stringify(entry))

/** Returns how many of the first entries fit into a page, at least one. */
export function countFitting<T>(
  entries: readonly T[],
  bytesOf: (entry: T) => number = jsonBytes,
  maxBytes = pageMaxBytes,
): number {
  let bytes = 0
  const tooLarge = entries.findIndex((entry, index) => {
    bytes += bytesOf(entry)
    return index > 0 && bytes > maxBytes
  })
  return tooLarge === -1 ? entries.length : tooLarge
}

export function pageTokenOf(list: string, { at, id }: PageEnd): string {
  return Buffer.from(`${markOf(list)} ${at.getTime()} ${id}`).toString('base64url')
}

/**
 * Returns the position of a token; undefined without a token, as for the first page. Errors: `ValidationFailed`, with
 * the rule `cursor` for a token of another list or workspace.
 */
export function readPageToken(list: string, token: string | undefined): PageEnd | undefined {
  if (!token) return undefined
  const [mark, time = '', id] = Buffer.from(token, 'base64url').toString('utf8').split(' ')
  if (!/^\d{1,15}$/.test(time) || !id) {
    throw invalid('/pageToken', 'format')
  }
  if (mark !== markOf(list)) throw invalid('/pageToken', 'cursor')
  return { at: new Date(Number(time)), id }
}

const markOf = (list: string) => createHash('sha256').update(list).digest('base64url').slice(0, 8)
