import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from './errors.ts'

/** The last entry of a page that is sorted by time and id. */
interface PageEnd {
  at: Date
  id: string
}

/**
 * Shortens the result of a query for `limit + 1` entries to a page of `limit` entries. Adds the
 * token of the next page, if there is one.
 */
export function cutPage<T>(
  found: T[],
  limit: number,
  endOf: (last: T) => PageEnd,
): { page: T[]; nextPageToken?: string } {
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length <= limit || last === undefined) return { page }
  return { page, nextPageToken: pageTokenOf(endOf(last)) }
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
    throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/pageToken', rule: 'format' }] })
  }
  return { at: new Date(Number(time)), id }
}
