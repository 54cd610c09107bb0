import type { Collection } from 'mongodb'
import { isDuplicateKey } from './faults.ts'

export interface IdempotencyDocument {
  _id: string
  inputHash: string
  /** Whose operation it was: the session that asked, and the one that the answer is about. */
  sessionIds?: string[]
  /** Set once the operation is done; what its answer is made from again. Never a credential. */
  result?: unknown
  /** Until when the first request is taken to be still running. */
  runningUntil: Date
  expiresAt: Date
}

export type IdempotencyRecord = Omit<IdempotencyDocument, '_id'>

export interface IdempotencyStore {
  /** Takes the key for a new operation, or returns the record of the one that has it. */
  claim(key: string, record: Omit<IdempotencyRecord, 'result'>, now: Date): Promise<IdempotencyRecord | undefined>
  /** `sessionId` is the session that the result is about. */
  finish(key: string, result: unknown, sessionId?: string): Promise<void>
  /** The operation failed and left nothing behind: the key is free again. */
  release(key: string): Promise<void>
}

export function createIdempotencyStore({
  idempotency,
}: {
  idempotency: Collection<IdempotencyDocument>
}): IdempotencyStore {
  return {
    async claim(key, record, now) {
      try {
        await idempotency.insertOne({ _id: key, ...record })
        return undefined
      } catch (error) {
        if (!isDuplicateKey(error)) throw error
      }
      // Its time is over, or its process died before it was done: whoever replaces it first has the key.
      const takenOver = await idempotency.replaceOne(
        {
          _id: key,
          $or: [
            { expiresAt: { $lte: now } },
            { result: { $exists: false }, runningUntil: { $lte: now }, inputHash: record.inputHash },
          ],
        },
        record,
      )
      if (takenOver.modifiedCount === 1) return undefined
      const found = await idempotency.findOne({ _id: key })
      return found ?? this.claim(key, record, now)
    },

    async finish(key, result, sessionId) {
      await idempotency.updateOne(
        { _id: key },
        { $set: { result }, ...(sessionId !== undefined && { $addToSet: { sessionIds: sessionId } }) },
      )
    },

    async release(key) {
      await idempotency.deleteOne({ _id: key, result: { $exists: false } })
    },
  }
}
