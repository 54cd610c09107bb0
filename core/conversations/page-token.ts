import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'

/** The last entry of a page that is sorted by time and id. */
export interface PageEnd {
  at: Date
  id: string
}

export function pageTokenAfter({ at, id }: PageEnd): string {
  return Buffer.from(`${at.getTime()} ${id}`).toString('base64url')
}

/** Errors: `ValidationFailed` for an invalid token. */
export function readPageToken(token: string): PageEnd {
  const [time = '', id] = Buffer.from(token, 'base64url').toString('utf8').split(' ')
  if (!/^\d{1,15}$/.test(time) || !id) {
    throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/pageToken', rule: 'format' }] })
  }
  return { at: new Date(Number(time)), id }
}
