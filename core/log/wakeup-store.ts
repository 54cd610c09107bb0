import { setTimeout as delay } from 'node:timers/promises'
import type { Collection } from 'mongodb'
import type { Nudge } from '../database/nudge.ts'
import { createPrimaryProof } from './primary-proof-store.ts'

export interface WakeupDocument {
  /** Id of the process that wrote it. */
  from: string
  /** Ends of logs as the writer knows them, and whether the conversation is closed there. */
  heads: [conversationId: string, sequence: number, closed: boolean][]
  /** Ids of sessions, connections and installations whose state changed. */
  changed: string[]
  at: Date
}

export type Wakeup = Omit<WakeupDocument, 'from'>

export interface WakeupStore {
  publish(wakeup: WakeupDocument): Promise<void>
  /**
   * Yields the wake-ups of all processes until the signal aborts, and `CaughtUp` whenever none is
   * left. Ends or throws when the cursor is lost or overtaken by the writers. Some wake-ups are
   * then lost.
   */
  follow(signal: AbortSignal, monotonic: () => number): AsyncIterable<WakeupDocument | CaughtUp>
}

/** Every wake-up published before this time of `monotonic` was yielded. */
export interface CaughtUp {
  asOf: number
}

/** How long the server waits for new documents before it returns an empty result. */
const maxAwaitMs = 200
const batchSize = 1000
/** Time limit for a majority to confirm a read. */
const confirmedWithinMs = 2_000
/**
 * An empty result faster than this means that the server does not wait, like the embedded engine.
 */
const minAwaitMs = 50
/** Pause between two reads in that case, with a nudge to end it and without. */
const nudgedPauseMs = 200
const pauseMs = 10

export function createWakeupStore({
  wakeups,
  nudge,
}: {
  wakeups: Collection<WakeupDocument>
  /** Set when all processes run on one machine. */
  nudge?: Nudge | undefined
}): WakeupStore {
  const isReplicated = wakeups.writeConcern?.w === 'majority'

  async function readNewest(): Promise<string> {
    const [newest] = await wakeups
      .find({}, { readConcern: 'linearizable', maxTimeMS: confirmedWithinMs, projection: { _id: 1 } })
      .sort({ $natural: -1 })
      .limit(1)
      .toArray()
    return String(newest?._id ?? '')
  }

  /** Replaces the wait of a server that does not wait. */
  const pause = (heard: number, signal: AbortSignal) =>
    nudge ? nudge.after(heard, nudgedPauseMs) : delay(pauseMs, undefined, { signal }).catch(() => {})

  return {
    async publish(wakeup) {
      // Ends of logs are hints: a lost one only costs time, and a wait for the journal would slow
      // every send. Changes end cached authorization, so they must survive a failover like the
      // state that changed.
      const options = wakeup.changed.length > 0 ? {} : { writeConcern: { w: 1 } }
      await wakeups.insertOne({ ...wakeup }, options)
      nudge?.announce()
    },

    async *follow(signal, monotonic) {
      // A tailable cursor on an empty collection ends at once.
      await wakeups.insertOne({ from: '', heads: [], changed: [], at: new Date() }, { writeConcern: { w: 1 } })
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
          // A nudge announces each document that arrived after the read began.
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
