import { MongoAPIError, MongoError, MongoServerError } from 'mongodb'

export const duplicateKey = 11000

/** The name of the unique index that an error is about; undefined for other errors. */
export function duplicateIndex(error: { code?: unknown; errmsg?: unknown }): string | undefined {
  if (error.code !== duplicateKey) return undefined
  return /index: (\S+)/.exec(String(error.errmsg))?.[1] ?? ''
}

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === duplicateKey
}

/** A failure of the database, not of our code: a retry may succeed. */
export function isStoreFault(error: unknown): boolean {
  return error instanceof MongoError
}

/**
 * Codes of a server that is starting, stopping or handing over its primary role, or of a timeout.
 */
const transientCodes = new Set([6, 7, 50, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436])

/**
 * The database is unreachable or too slow, so a retry may succeed. False for wrong settings and
 * rejected commands.
 */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof MongoServerError) return transientCodes.has(Number(error.code))
  return error instanceof MongoError && !(error instanceof MongoAPIError)
}
