import type { Collection } from 'mongodb'
import { isDuplicateKey } from './faults.ts'

export interface IdempotencyDocument {
  _id: string
  inputHash: string
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
  finish(key: string, result: unknown): Promise<void>
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

    async finish(key, result) {
      await idempotency.updateOne({ _id: key }, { $set: { result } })
    },

    async release(key) {
      await idempotency.deleteOne({ _id: key, result: { $exists: false } })
    },
  }
}
