import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Collection } from 'mongodb'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { ServiceError } from '../errors.ts'
import { insertEach } from '../mongodb/insert-each.ts'
import { createLeases, newToken } from '../mongodb/leases.ts'
import { type DocumentUpdate, updateEach } from '../mongodb/update-each.ts'
import { isIdempotencyKey } from '../rules.ts'

export interface Repeatable<T> {
  content: T
  replayed: boolean
}

export interface Operation<R> {
  /** Route and owner of the key. A key in a different scope names a different operation. */
  scope: string[]
  key: string
  /** Session of the request, if any. When its visitor is erased, the record is removed. */
  sessionId?: string
  /** Input of the request as it was sent. The input of a repeated request must be equal. */
  input: unknown
  /** Time in seconds during which a repeated request returns the first result. */
  keptFor: number
  /**
   * Runs the operation. The result is stored, so it must not contain credentials. The operation may
   * run again after its process died, or while a slow run is still running. `operation` identifies
   * scope, key and input and is the same in each run. `startedAt` is the start of the first run. It
   * changes only when the key is used again after its record expired.
   */
  run: (operation: string, startedAt: Date) => Promise<R>
}

/** Time in milliseconds after which a run is considered dead and another may take over. */
const maxRunMs = 15_000

export function createIdempotency(store: IdempotencyStore, now: () => number) {
  return {
    /**
     * Runs an operation once, even if its repeats reach other processes (contract, section 1). If
     * another run took over, the slower run returns the stored result. Errors:
     * `IdempotencyKeyInvalid`, `IdempotencyConflict` for different input, `OperationInProgress` while
     * the first run is still running.
     */
    async once<R>({ scope, key, sessionId, input, keptFor, run }: Operation<R>): Promise<Repeatable<R>> {
      if (!isIdempotencyKey(key)) throw new ServiceError('IdempotencyKeyInvalid')
      const id = createHash('sha256')
        .update(JSON.stringify([...scope, key]))
        .digest('base64url')
      const inputHash = hashInput(input)
      const startedAt = new Date(now())
      const lease = {
        owner: newToken(),
        startedAt,
        inputHash,
        sessionIds: sessionId === undefined ? undefined : [sessionId],
        runningUntil: new Date(startedAt.getTime() + maxRunMs),
        expiresAt: new Date(startedAt.getTime() + keptFor * 1000),
      }

      function replay(earlier: IdempotencyRecord) {
        if (earlier.inputHash !== inputHash) throw new ServiceError('IdempotencyConflict')
        if (earlier.result === undefined) throw new ServiceError('OperationInProgress', { retryAfter: 1 })
        return { content: earlier.result as R, replayed: true }
      }

      const attempt = await store.acquire(id, lease, startedAt)
      if ('earlier' in attempt) return replay(attempt.earlier)
      const { acquired } = attempt
      try {
        const result = await run(`${id}.${inputHash}`, acquired.startedAt)
        const other = await store.finish(id, acquired, result, sessionIdIn(result))
        return other ? replay(other) : { content: result, replayed: false }
      } catch (error) {
        await store.release(id, acquired).catch(() => {})
        throw error
      }
    },
  }
}

export type Idempotency = ReturnType<typeof createIdempotency>

function sessionIdIn(result: unknown) {
  const { sessionId } = Object(result) as { sessionId?: unknown }
  return typeof sessionId === 'string' ? sessionId : undefined
}

/** Returns the SHA-256 of the input's canonical JSON (RFC 8785). */
export function hashInput(input: unknown): string {
  return createHash('sha256')
    .update(canonicalize(input) ?? '')
    .digest('base64url')
}

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

type Acquired = { acquired: KeyLease } | { earlier: IdempotencyRecord }

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
    async acquire(key: string, lease: KeyLease, now: Date): Promise<Acquired> {
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
    async finish(key: string, lease: KeyLease, result: unknown, sessionId?: string) {
      const { owner, sessionIds = [] } = lease
      const isStored = await update({
        filter: leases.held({ id: key, token: owner }),
        update: { $set: { result }, $addToSet: { sessionIds: sessionId } },
      })
      if (isStored) return undefined
      const ids = new Set([...sessionIds, sessionId].filter((id) => id !== undefined))
      return insert(key, { ...lease, result, sessionIds: ids.size > 0 ? [...ids] : undefined })
    },

    /** Removes the lease after a failure without effects, if it is still held. */
    async release(key: string, { owner }: KeyLease) {
      await idempotency.deleteOne({ ...leases.held({ id: key, token: owner }), result: { $exists: false } })
    },
  }
}

export type IdempotencyStore = ReturnType<typeof createIdempotencyStore>
