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
   * Uses a nonce up for one operation; that same operation may do so again, after its process died. False when another
   * one has used it. Whatever happens at once on however many processes, one wins.
   */
  use(nonce: { publicSiteKey: string; nonce: string; operation: string; expiresAt: Date }, now: Date): Promise<boolean>
}

export function createNonceStore({ nonces }: { nonces: Collection<NonceDocument> }): NonceStore {
  return {
    async use({ publicSiteKey, nonce, operation, expiresAt }, now) {
      const _id = createHash('sha256')
        .update(JSON.stringify([publicSiteKey, nonce]))
        .digest('base64url')
      try {
        await nonces.insertOne({ _id, operation, expiresAt })
        return true
      } catch (error) {
        if (!isDuplicateKey(error)) throw error
      }
      // Whoever used it is this operation, or its time is over and it only lies there to be deleted.
      const mine = await nonces.updateOne(
        { _id, $or: [{ operation }, { expiresAt: { $lte: now } }] },
        { $set: { operation, expiresAt } },
      )
      return mine.matchedCount === 1
    },
  }
}
