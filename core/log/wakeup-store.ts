import { setTimeout as delay } from 'node:timers/promises'
import type { Collection } from 'mongodb'
import { createPrimaryProof } from './primary-proof-store.ts'

export interface WakeupDocument {
  /** Id of the process that wrote the document. */
  from: string
  /** New ends of logs, and whether each conversation is closed at that end. */
  heads: [conversationId: string, sequence: number, closed: boolean][]
  /** Ids of sessions, connections and installations whose state changed. */
  changed: string[]
  /** Changes that the process is about to write, each with the ids whose state changes. */
  announced?: { change: string; ids: string[] }[]
  /** Announced changes whose write has succeeded. */
  ended?: string[]
  /** Number of wake-ups with state changes that the process has written, including this one. */
  changes?: number
  /** Whether the process waits until the other cores have applied these changes. */
  awaited?: true
  /** Numbers of changes of other processes that this process has applied. */
  confirmed?: [processId: string, changes: number][]
  at: Date
}

export type Wakeup = Omit<WakeupDocument, 'from'>

/**
 * Nudges: signals between the processes of one machine that a wake-up was written. A nudge may be
 * late or lost.
 */
export interface Nudge {
  announce(): void
  /** Returns the number of nudges received from other processes. */
  count(): number
  /** Resolves when the number of nudges differs from `known`, or after `atMostMs`. */
  after(known: number, atMostMs: number): Promise<void>
}

export interface WakeupStore {
  publish(wakeup: WakeupDocument): Promise<void>
  /**
   * Yields the wake-ups of all processes until the signal aborts, and `CaughtUp` whenever every
   * wake-up was read. Ends or throws when the cursor is lost, or when writers have overwritten
   * documents that the cursor did not read. Some wake-ups are then lost.
   */
  follow(signal: AbortSignal, monotonic: () => number): AsyncIterable<WakeupDocument | CaughtUp>
  /**
   * Removes wake-ups from before `time`, oldest first. A cursor that has not read them loses its
   * place, so it ends instead of missing them. Keeps the newest wake-up, because cursors wait at
   * it. If the newest wake-up is outdated too, adds an empty wake-up, so that a later call can
   * remove the outdated one. Returns whether no outdated wake-up with ids is left.
   */
  removeBefore(time: Date, now: Date): Promise<boolean>
}

/**
 * Tells the reader that every wake-up published before `asOf` was yielded. `asOf` is a time of the
 * clock `monotonic`.
 */
export interface CaughtUp {
  asOf: number
}

/**
 * Time in milliseconds for which the server waits for new documents before it returns an empty
 * result.
 */
const maxAwaitMs = 200
const batchSize = 1000
/** Time limit in milliseconds for a majority to confirm the linearizable read. */
const confirmedWithinMs = 2_000
/**
 * If an empty result arrives within this time in milliseconds, the server did not wait for
 * documents. The embedded database never waits. The reader then pauses before the next read.
 */
const minAwaitMs = 50
/** Maximum wait for a nudge before the next read, in milliseconds. */
const nudgedPauseMs = 200
/** Pause in milliseconds before the next read if nudges are not used. */
const pauseMs = 10

const removedAtOnce = 500
/** Writer of wake-ups without ids. */
const emptyFrom = ''

export function createWakeupStore({
  wakeups,
  nudge,
}: {
  wakeups: Collection<WakeupDocument>
  /** Present if all processes run on one machine. */
  nudge?: Nudge | undefined
}): WakeupStore {
  const isReplicated = wakeups.writeConcern?.w === 'majority'

  async function addEmpty(at: Date) {
    await wakeups.insertOne({ from: emptyFrom, heads: [], changed: [], at }, { writeConcern: { w: 1 } })
  }

  async function readNewest(): Promise<string> {
    const [newest] = await wakeups
      .find({}, { readConcern: 'linearizable', maxTimeMS: confirmedWithinMs, projection: { _id: 1 } })
      .sort({ $natural: -1 })
      .limit(1)
      .toArray()
    return String(newest?._id ?? '')
  }

  /**
   * Waits before the next read. `heard` is the number of nudges before the last read. A later
   * nudge ends the wait.
   */
  const pause = (heard: number, signal: AbortSignal) =>
    nudge ? nudge.after(heard, nudgedPauseMs) : delay(pauseMs, undefined, { signal }).catch(() => {})

  return {
    async publish(wakeup) {
      // A lost end of a log only delays events, and waiting for the journal would slow every send.
      // A lost state change would leave outdated authorization data in caches. So wake-ups with
      // state changes must survive a failover.
      const hasChanges = wakeup.changed.length > 0 || wakeup.announced !== undefined
      const options = hasChanges ? {} : { writeConcern: { w: 1 } }
      await wakeups.insertOne({ ...wakeup }, options)
      nudge?.announce()
    },

    async removeBefore(time, now) {
      // The order of a capped collection is the order of its inserts.
      for (;;) {
        const oldest = await wakeups
          .find({}, { projection: { at: 1, from: 1 } })
          .limit(removedAtOnce + 1)
          .toArray()
        const outdated = oldest.filter(({ at }) => at < time)
        if (outdated.length === 0) return true
        const isAll = outdated.length === oldest.length
        const ids = (isAll ? outdated.slice(0, -1) : outdated).map(({ _id }) => _id)
        await wakeups.deleteMany({ _id: { $in: ids } })
        if (oldest.length > removedAtOnce) continue
        if (!isAll || outdated.at(-1)?.from === emptyFrom) return true
        await addEmpty(now)
        return false
      }
    },

    async *follow(signal, monotonic) {
      // A tailable cursor on an empty collection ends at once. So the collection gets one document
      // first.
      await addEmpty(new Date())
      const cursor = wakeups.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: maxAwaitMs, batchSize })
      const proof = isReplicated ? createPrimaryProof(readNewest, monotonic) : undefined
      const close = () => void cursor.close().catch(() => {})
      signal.addEventListener('abort', close, { once: true })
      try {
        for (let taken = 0, askedAt = 0; !signal.aborted && !cursor.closed; ) {
          if (cursor.bufferedCount() === 0) askedAt = monotonic()
          const heard = nudge?.count() ?? 0
          const next = await cursor.tryNext()
          if (next !== null) {
            const { _id, ...wakeup } = next
            yield wakeup
            proof?.received(String(_id))
            taken += 1
          }
          if (cursor.bufferedCount() > 0) continue
          // After a full batch there may be more documents.
          const isAll = taken < batchSize
          const asOf = proof ? proof.asOf() : askedAt
          if (isAll && asOf !== undefined) yield { asOf }
          // With nudges, wait for the next nudge after all documents were read. A nudge that
          // arrived since the read began ends this wait at once. Without nudges, pause only if the
          // server returned an empty result without waiting.
          const hasWaited = nudge ? !isAll : next !== null || monotonic() - askedAt >= minAwaitMs
          if (!hasWaited) await pause(heard, signal)
          taken = 0
        }
      } finally {
        signal.removeEventListener('abort', close)
        await cursor.close()
      }
    },
  }
}
