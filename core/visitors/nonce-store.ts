import { createHash } from 'node:crypto'
import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'

export interface NonceDocument {
  _id: string
  /** The operation that used it. */
  operation: string
  expiresAt: Date
}

export interface NonceStore {
  /**
   * Consumes a nonce for one operation. The same operation may do so again after its process died.
   * Returns false when another operation has consumed it. With any number of processes, one
   * operation wins.
   */
  consume(
    nonce: { publicSiteKey: string; nonce: string; operation: string; expiresAt: Date },
    now: Date,
  ): Promise<boolean>
}

export function createNonceStore({ nonces }: { nonces: Collection<NonceDocument> }): NonceStore {
  return {
    async consume({ publicSiteKey, nonce, operation, expiresAt }, now) {
      const _id = createHash('sha256')
        .update(JSON.stringify([publicSiteKey, nonce]))
        .digest('base64url')
      try {
        await nonces.insertOne({ _id, operation, expiresAt })
        return true
      } catch (error) {
        if (!isDuplicateKey(error)) throw error
      }
      // It was consumed by this operation, or it has expired and is not deleted yet.
      const retaken = await nonces.updateOne(
        { _id, $or: [{ operation }, { expiresAt: { $lte: now } }] },
        { $set: { operation, expiresAt } },
      )
      return retaken.matchedCount === 1
    },
  }
}
