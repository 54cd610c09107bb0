import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'

export interface IdempotencyDocument {
  _id: string
  inputHash: string
  /** Sessions of the operation: the session of the request and that of the result. */
  sessionIds?: string[]
  /** Set once the operation is done. Its response is rebuilt from it. Never a credential. */
  result?: unknown
  /** The run that leases the key. Only its writes count. */
  owner?: string
  /** Start of the first run. A run that takes over from a dead one keeps it. */
  startedAt?: Date
  /** Time after which the owner counts as dead. */
  runningUntil: Date
  expiresAt: Date
}

export type IdempotencyRecord = Omit<IdempotencyDocument, '_id'>

/** Lease of a key by one run. */
export type KeyLease = Required<Pick<IdempotencyRecord, 'owner' | 'startedAt'>> & Omit<IdempotencyRecord, 'result'>

export interface IdempotencyStore {
  /**
   * Leases the key for a new operation, or takes it over from a dead run. Otherwise returns the
   * earlier record.
   */
  acquire(key: string, lease: KeyLease, now: Date): Promise<{ acquired: KeyLease } | { earlier: IdempotencyRecord }>
  /**
   * Stores the result if the lease is still held or the key is free. Otherwise returns the other
   * record. `sessionId` is the session of the result.
   */
  finish(key: string, lease: KeyLease, result: unknown, sessionId?: string): Promise<IdempotencyRecord | undefined>
  /** Frees the key after a failure without effects, if the lease is still held. */
  release(key: string, lease: KeyLease): Promise<void>
}

export function createIdempotencyStore({
  idempotency,
}: {
  idempotency: Collection<IdempotencyDocument>
}): IdempotencyStore {
  /** Inserts a record. Returns the existing one if there is one. */
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
    async acquire(key, lease, now) {
      for (;;) {
        const earlier = await insert(key, lease)
        if (!earlier) return { acquired: lease }
        const isExpired = earlier.expiresAt <= now
        const isDead =
          earlier.result === undefined && earlier.runningUntil <= now && earlier.inputHash === lease.inputHash
        if (!isExpired && !isDead) return { earlier }
        const { startedAt = lease.startedAt } = isExpired ? lease : earlier
        const acquired = { ...lease, startedAt }
        // The record must be unchanged since it was read.
        const { owner, runningUntil, expiresAt } = earlier
        const unchanged = {
          _id: key,
          owner: owner ?? { $exists: false },
          runningUntil,
          expiresAt,
          ...(isExpired ? {} : { result: { $exists: false } }),
        }
        if ((await idempotency.replaceOne(unchanged, acquired)).matchedCount === 1) return { acquired }
      }
    },

    async finish(key, lease, result, sessionId) {
      const { owner, sessionIds = [] } = lease
      const { matchedCount } = await idempotency.updateOne(
        { _id: key, owner },
        { $set: { result }, ...(sessionId !== undefined && { $addToSet: { sessionIds: sessionId } }) },
      )
      if (matchedCount === 1) return undefined
      const allSessionIds = [...new Set([...sessionIds, ...(sessionId === undefined ? [] : [sessionId])])]
      return insert(key, { ...lease, result, ...(allSessionIds.length > 0 && { sessionIds: allSessionIds }) })
    },

    async release(key, { owner }) {
      await idempotency.deleteOne({ _id: key, owner, result: { $exists: false } })
    },
  }
}
