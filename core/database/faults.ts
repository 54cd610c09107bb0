import { MongoAPIError, MongoError, MongoServerError } from 'mongodb'

export const duplicateKey = 11000

/** The name of the unique index that an error is about; undefined for any other error. */
export function duplicateIndex(error: { code?: unknown; errmsg?: unknown }): string | undefined {
  if (error.code !== duplicateKey) return undefined
  return /index: (\S+)/.exec(String(error.errmsg))?.[1] ?? ''
}

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === duplicateKey
}

/** The store failed, as against a mistake of ours: the same call may succeed later. */
export function isStoreFault(error: unknown): boolean {
  return error instanceof MongoError
}

/** Codes of a server that starts, stops or hands its primary over, or that a call took too long for. */
const passingCodes = new Set([6, 7, 50, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436])

/** No server answers, or it is too slow: the same call may succeed once it does. Wrong settings and refusals are not. */
export function isOutOfReach(error: unknown): boolean {
  if (error instanceof MongoServerError) return passingCodes.has(Number(error.code))
  return error instanceof MongoError && !(error instanceof MongoAPIError)
}
