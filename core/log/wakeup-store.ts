import { setTimeout as delay } from 'node:timers/promises'
import type { Collection } from 'mongodb'
import type { Nudge } from '../database/nudge.ts'
import { createPrimaryProof } from './primary-proof-store.ts'

export interface WakeupDocument {
  /** Which process wrote it. */
  from: string
  /** Ends of conversations' logs, as the writer saw them, and whether the conversation is closed there. */
  heads: [conversationId: string, sequence: number, closed: boolean][]
  /** Ids of sessions, connections and installations whose state changed. */
  changed: string[]
  at: Date
}

export type Wakeup = Omit<WakeupDocument, 'from'>

export interface WakeupStore {
  publish(wakeup: WakeupDocument): Promise<void>
  /**
   * Every wake-up of every process, until the signal, and `CaughtUp` whenever none is left for now. Ends or throws when
   * the cursor is lost, or was overtaken by the writers; some wake-ups are then missing.
   */
  follow(signal: AbortSignal, monotonic: () => number): AsyncIterable<WakeupDocument | CaughtUp>
}

/** Every wake-up that was published before this time of `monotonic` has been given. */
export interface CaughtUp {
  asOf: number
}

/** How long the store holds a question open when there is nothing new, in milliseconds. */
const patience = 200
const batchSize = 1000
/** How long the majority of a replica set may take to confirm a read, in milliseconds. */
const confirmedWithinMs = 2_000
/** A server that knows of nothing new and answers sooner than this holds no question open, as the embedded engine does not. */
const heldMs = 50
/** How long is waited between two questions then, in milliseconds: with a nudge to end it, and without. */
const nudgedPauseMs = 200
const blindPauseMs = 10

export function createWakeupStore({
  wakeups,
  nudge,
}: {
  wakeups: Collection<WakeupDocument>
  /** Where all processes are on one machine. */
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

  /** What the server would do itself, were it to hold the question open. */
  const pause = (heard: number, signal: AbortSignal) =>
    nudge ? nudge.after(heard, nudgedPauseMs) : delay(blindPauseMs, undefined, { signal }).catch(() => {})

  return {
    async publish(wakeup) {
      // Where logs end is a hint: losing one costs time, and waiting for the journal would cost every send the same.
      // What changed ends cached authorisation, and must survive a change of the primary like the change itself.
      const options = wakeup.changed.length > 0 ? {} : { writeConcern: { w: 1 } }
      await wakeups.insertOne({ ...wakeup }, options)
      nudge?.announce()
    },

    async *follow(signal, monotonic) {
      // A tailable cursor on an empty collection ends at once.
      await wakeups.insertOne({ from: '', heads: [], changed: [], at: new Date() }, { writeConcern: { w: 1 } })
      const cursor = wakeups.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: patience, batchSize })
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
            proof?.given(String(_id))
            taken += 1
          }
          if (cursor.bufferedCount() > 0) continue
          // A full batch says nothing of what comes after it.
          const isAll = taken < batchSize
          const asOf = proof ? proof.asOf() : askedAt
          if (isAll && asOf !== undefined) yield { asOf }
          // Whatever came after the question is announced after it.
          const isHeld = nudge ? !isAll : next !== null || monotonic() - askedAt >= heldMs
          if (!isHeld) await pause(heard, signal)
          taken = 0
        }
      } finally {
        signal.removeEventListener('abort', close)
        await cursor.close()
      }
    },
  }
}
