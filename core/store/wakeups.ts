import { setTimeout as delay } from 'node:timers/promises'
import type { Collection } from 'mongodb'
import type { Nudge } from './nudge.ts'

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
   * Every wake-up of every process, until the signal: `null` says that there is none left for now. Ends or throws when
   * the cursor is lost, or was overtaken by the writers; some wake-ups are then missing.
   */
  follow(signal: AbortSignal): AsyncIterable<WakeupDocument | null>
}

/** How long the store holds a question open when there is nothing new, in milliseconds. */
const patience = 400
const batchSize = 1000
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
  /** What the server would do itself, were it to hold the question open. */
  const pause = (heard: number, signal: AbortSignal) =>
    nudge ? nudge.after(heard, nudgedPauseMs) : delay(blindPauseMs, undefined, { signal }).catch(() => {})

  return {
    async publish(wakeup) {
      // A hint: losing one costs time, and waiting for the journal would cost every send the same.
      await wakeups.insertOne({ ...wakeup }, { writeConcern: { w: 1 } })
      nudge?.announce()
    },

    async *follow(signal) {
      // A tailable cursor on an empty collection ends at once.
      await wakeups.insertOne({ from: '', heads: [], changed: [], at: new Date() }, { writeConcern: { w: 1 } })
      const cursor = wakeups.find(
        {},
        { tailable: true, awaitData: true, maxAwaitTimeMS: patience, batchSize, projection: { _id: 0 } },
      )
      const close = () => void cursor.close().catch(() => {})
      signal.addEventListener('abort', close, { once: true })
      try {
        for (let taken = 0; !signal.aborted && !cursor.closed; ) {
          const askedAt = performance.now()
          const heard = nudge?.heard() ?? 0
          const wakeup = await cursor.tryNext()
          if (wakeup !== null) {
            yield wakeup
            taken += 1
          }
          if (cursor.bufferedCount() > 0) continue
          // A full batch says nothing of what comes after it.
          const isAll = taken < batchSize
          if (isAll) yield null
          // Whatever came after the question is announced after it.
          const isHeld = nudge ? !isAll : wakeup !== null || performance.now() - askedAt >= heldMs
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
