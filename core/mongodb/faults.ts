import { MongoAPIError, MongoError, MongoServerError } from 'mongodb'

export const duplicateKey = 11000

/**
 * Returns the name of the unique index that a write violated, or an empty text if the error does not name it.
 * Returns undefined for other errors.
 */
export function duplicateIndex(error: { code?: unknown; errmsg?: unknown }): string | undefined {
  if (error.code !== duplicateKey) return undefined
  return /index: (\S+)/.exec(String(error.errmsg))?.[1] ?? ''
}

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === duplicateKey
}

/** Returns the result of a write, or undefined if it violated a unique index. */
export async function unlessDuplicate<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write
  } catch (error) {
    if (isDuplicateKey(error)) return undefined
    throw error
  }
}

/** Whether the server or its driver reported the error, so that callers may retry. */
export function isStoreFault(error: unknown): boolean {
  return error instanceof MongoError
}

/** Codes of timeouts, of missing members, and of a server that starts, stops or gives up its primary role. */
const transientCodes = new Set([6, 7, 50, 64, 89, 91, 133, 134, 189, 202, 262, 9001, 10107, 11600, 11602, 13435, 13436])

const dnsCodes = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ETIMEOUT', 'ESERVFAIL', 'ENODATA'])

/** Whether the database is unreachable or too slow. False for wrong settings and rejected commands. */
export function isUnreachable(error: unknown): boolean {
  if (dnsCodes.has((error as NodeJS.ErrnoException).code ?? '')) return true
  if (error instanceof MongoServerError) return transientCodes.has(Number(error.code))
  return error instanceof MongoError && !(error instanceof MongoAPIError)
}
