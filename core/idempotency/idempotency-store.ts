import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'

export interface IdempotencyDocument {
  _id: string
  inputHash: string
  /** Whose operation it was: the session that asked, and the one that the answer is about. */
  sessionIds?: string[]
  /** Set once the operation is done; what its answer is made from again. Never a credential. */
  result?: unknown
  /** The run that holds the key: only its writes count. */
  owner?: string
  /** When the key was first claimed. A run that takes the key over from a dead one keeps it. */
  startedAt?: Date
  /** Until when the owner is taken to be alive. */
  runningUntil: Date
  expiresAt: Date
}

export type IdempotencyRecord = Omit<IdempotencyDocument, '_id'>

/** What a run needs to hold a key. */
export type Claim = Required<Pick<IdempotencyRecord, 'owner' | 'startedAt'>> & Omit<IdempotencyRecord, 'result'>

export interface IdempotencyStore {
  /**
   * Takes the key for a new operation, or takes it over from a run that is taken to be dead; else returns the record of the
   * one that has it.
   */
  claim(key: string, claim: Claim, now: Date): Promise<{ claimed: Claim } | { earlier: IdempotencyRecord }>
  /**
   * Stores the result if the claim still holds, or if nobody has the key. Returns the other record if it does not.
   * `sessionId` is the session that the result is about.
   */
  finish(key: string, claim: Claim, result: unknown, sessionId?: string): Promise<IdempotencyRecord | undefined>
  /** The operation failed and left nothing behind: the key is free again, if the claim still holds. */
  release(key: string, claim: Claim): Promise<void>
}

export function createIdempotencyStore({
  idempotency,
}: {
  idempotency: Collection<IdempotencyDocument>
}): IdempotencyStore {
  /** Inserts a record unless there is one, which is then returned. */
  async function insert(key: string, record: IdempotencyRecord): Promise<IdempotencyRecord | undefined> {
    for (;;) {
      try {
        await idempotency.insertOne({ _id: key, ...record })
        return undefined
      } catch (error) {
        if (!isDuplicateKey(error)) throw error
      }
      const found = await idempotency.findOne({ _id: key })
      if (found) return found
    }
  }

  return {
    async claim(key, claim, now) {
      for (;;) {
        const earlier = await insert(key, claim)
        if (!earlier) return { claimed: claim }
        const isOver = earlier.expiresAt <= now
        const isDead =
          earlier.result === undefined && earlier.runningUntil <= now && earlier.inputHash === claim.inputHash
        if (!isOver && !isDead) return { earlier }
        const { startedAt = claim.startedAt } = isOver ? claim : earlier
        const claimed = { ...claim, startedAt }
        // The record that was judged must still be there.
        const { owner, runningUntil, expiresAt } = earlier
        const unchanged = {
          _id: key,
          owner: owner ?? { $exists: false },
          runningUntil,
          expiresAt,
          ...(isOver ? {} : { result: { $exists: false } }),
        }
        if ((await idempotency.replaceOne(unchanged, claimed)).matchedCount === 1) return { claimed }
      }
    },

    async finish(key, claim, result, sessionId) {
      const { owner, sessionIds = [] } = claim
      const { matchedCount } = await idempotency.updateOne(
        { _id: key, owner },
        { $set: { result }, ...(sessionId !== undefined && { $addToSet: { sessionIds: sessionId } }) },
      )
      if (matchedCount === 1) return undefined
      const named = [...new Set([...sessionIds, ...(sessionId === undefined ? [] : [sessionId])])]
      return insert(key, { ...claim, result, ...(named.length > 0 && { sessionIds: named }) })
    },

    async release(key, { owner }) {
      await idempotency.deleteOne({ _id: key, owner, result: { $exists: false } })
    },
  }
}
