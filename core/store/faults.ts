import { MongoError, MongoServerError } from 'mongodb'

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
