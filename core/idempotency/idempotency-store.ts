import type { Collection } from 'mongodb'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { insertEach } from '../mongodb/insert-each.ts'
import { createLeases } from '../mongodb/leases.ts'
import { type DocumentUpdate, updateEach } from '../mongodb/update-each.ts'

export interface IdempotencyDocument {
  _id: string
  inputHash: string
  /** Ids of the session that sent the request and of the session in the result. */
  sessionIds?: string[]
  /** Set when the operation is done. The response is created from it. It never contains a credential. */
  result?: unknown
  /** Token of the run that leases the key. Writes of other runs have no effect. */
  owner?: number
  /** Start of the first run. A run that takes over from a dead run keeps this time. */
  startedAt?: Date
  /** Time at which the lease ends. Then another run may take over. */
  runningUntil: Date
  expiresAt: Date
}

export type IdempotencyRecord = Omit<IdempotencyDocument, '_id'>

/** The fields of a record while one run leases its idempotency key. */
type KeyLease = Required<Pick<IdempotencyRecord, 'owner' | 'startedAt'>> & Omit<IdempotencyRecord, 'result'>

export function createIdempotencyStore({ idempotency }: { idempotency: Collection<IdempotencyDocument> }) {
  // Concurrent operations share calls, because a call costs the database more than a document.
  const { add: insertOnce } = createBatcher((records: IdempotencyDocument[]) => insertEach(idempotency, records))
  const leases = createLeases(idempotency, { until: 'runningUntil', token: 'owner' })
  const { add: update } = createBatcher((updates: DocumentUpdate<IdempotencyDocument>[]) =>
    updateEach(idempotency, updates),
  )

  /** Inserts a record. Returns the existing record if the key exists. */
  async function insert(key: string, record: IdempotencyRecord): Promise<IdempotencyRecord | undefined> {
    for (;;) {
      if (await insertOnce({ _id: key, ...record })) return undefined
      const found = await idempotency.findOne({ _id: key })
      if (found) return found
    }
  }

  return {
    /** Leases the key if it is new or its run has died. Otherwise returns the earlier record. */
    async acquire(
      key: string,
      lease: KeyLease,
      now: Date,
    ): Promise<{ acquired: KeyLease } | { earlier: IdempotencyRecord }> {
      for (;;) {
        const earlier = await insert(key, lease)
        if (!earlier) return { acquired: lease }
        if (earlier.expiresAt <= now) {
          await idempotency.deleteOne({ _id: key, expiresAt: { $lte: now } })
          continue
        }
        const { inputHash, sessionIds, startedAt, expiresAt, runningUntil } = lease
        const isDead = earlier.result === undefined && earlier.runningUntil <= now && earlier.inputHash === inputHash
        if (!isDead) return { earlier }
        const unfinished = { _id: key, inputHash, result: { $exists: false } }
        const set = { sessionIds, expiresAt, startedAt: earlier.startedAt ?? startedAt }
        const taken = await leases.take({ now, until: runningUntil }, unfinished, set)
        if (taken) return { acquired: { ...lease, ...set, owner: taken.lease.token } }
      }
    },

    /**
     * Stores the result if the lease is still held or the key is free. Otherwise returns the existing
     * record. `sessionId` is the session of the result.
     */
    async finish(
      key: string,
      lease: KeyLease,
      result: unknown,
      sessionId?: string,
    ): Promise<IdempotencyRecord | undefined> {
      const { owner, sessionIds = [] } = lease
      const isStored = await update({
        filter: leases.held({ id: key, token: owner }),
        update: { $set: { result }, $addToSet: { sessionIds: sessionId } },
      })
      if (isStored) return undefined
      const allSessionIds = new Set([...sessionIds, ...(sessionId === undefined ? [] : [sessionId])])
      return insert(key, { ...lease, result, sessionIds: allSessionIds.size > 0 ? [...allSessionIds] : undefined })
    },

    /** Removes the lease after a failure without effects, if it is still held. */
    async release(key: string, { owner }: KeyLease) {
      await idempotency.deleteOne({ ...leases.held({ id: key, token: owner }), result: { $exists: false } })
    },
  }
}

export type IdempotencyStore = ReturnType<typeof createIdempotencyStore>
