import { type Collection, ObjectId } from 'mongodb'
import type { GrownPart, LogEvent } from '../log-event.ts'
import { beatEveryMs, createCursorProof } from './cursor-proof-store.ts'

export interface WakeupDocument {
  /** Id of the process that wrote the document. */
  from: string
  /**
   * New ends of logs, and whether each conversation is closed then. An end has its event if the event is
   * small, so that other processes need not read it. Otherwise it has the time since which the visitor waits.
   */
  heads: [
    conversationId: string,
    sequence: number,
    closed: boolean,
    event?: AnnouncedEvent | null,
    waitingSince?: Date,
  ][]
  grown?: GrownPart[]
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
  /** Set if the process has written this only to read it back (`createCursorProof`). */
  beat?: true
  /** Ids of the secret keys that the process accepts. Only beats have them. */
  kids?: string[]
  at: Date
}

/** An event without the fields that only the log needs. */
export type AnnouncedEvent = Omit<LogEvent, 'operationKey' | 'inputHash'>

export type PassedEnds = Pick<WakeupDocument, 'heads' | 'grown'>

/**
 * Messages between the processes of one machine, whose embedded engine does not let a read wait for new
 * documents. A nudge may be late or lost.
 */
export interface Nudge {
  /** Passes new ends of logs to the other processes at once. */
  pass(ends: PassedEnds): void
  onPassed(receive: (ends: PassedEnds) => void): void
  /** Tells the other processes to read the wake-ups. */
  announce(): void
  /** Returns the number of nudges received from other processes. */
  count(): number
  /** Resolves when the number of nudges differs from `known`, or after `atMostMs`. */
  after(known: number, atMostMs: number): Promise<void>
}

/** States that every wake-up published before `asOf`, a time of the clock `monotonic`, was yielded. */
export interface CaughtUp {
  asOf: number
}

/** Time in milliseconds for which the server waits for new documents. */
const maxAwaitMs = 1_000
const batchSize = 1000
/**
 * If an empty result arrives within this time, the server did not wait, as the embedded engine never
 * does. The reader then pauses before the next read.
 */
const minAwaitMs = 50
/** Maximum wait for a nudge or an own write before the next read. A process without others waits as long. */
const restMs = 1_000
/** Pause before the next read if other processes write and nudges are not used. */
const pauseMs = 10

const removedAtOnce = 500
/** Writer of wake-ups that only allow older ones to be removed. */
const emptyFrom = ''

/** @param nudge present if all processes run on one machine */
export function createWakeupStore({ wakeups, nudge }: { wakeups: Collection<WakeupDocument>; nudge?: Nudge }) {
  const empty = (from: string, at: Date) => ({ from, heads: [], changed: [], at })

  /** Uses `updateMany`, because the driver never retries it (see `createCursorProof`). */
  const writeBeat = (_id: ObjectId, from: string, kids: string[], at: Date) =>
    wakeups.updateMany({ _id }, { $set: { ...empty(from, at), beat: true, kids } }, { upsert: true })

  /** Resolves when this process has written something that it must read: a beat, or a change that it awaits. */
  let ownWrite = Promise.withResolvers<void>()
  let beatIfDue = () => {}

  /** Resolves with the next own write, or after this time. */
  function ownWriteWithin(ms: number) {
    const timer = setTimeout(ownWrite.resolve, ms)
    return ownWrite.promise.finally(() => clearTimeout(timer))
  }

  return {
    nudge,
    /** A hint may be lost when the database fails over, and waits for no journal. */
    async publish(wakeup: WakeupDocument, { isHint = false }: { isHint?: boolean } = {}) {
      // A lost end of a log only delays events, and waiting for the journal would slow every send. A lost
      // state change would leave outdated authorization data in caches, so it must survive a failover.
      const hasChanges = wakeup.changed.length > 0 || wakeup.announced !== undefined
      const options = hasChanges && !isHint ? {} : { writeConcern: { w: 1 } }
      await wakeups.insertOne({ ...wakeup }, options)
      if (hasChanges || wakeup.confirmed) nudge?.announce()
      if (wakeup.awaited) ownWrite.resolve()
    },

    /** Writes a beat at once if one is due. Must be called when `isNeeded` becomes true. */
    wake: () => beatIfDue(),
    /**
     * Removes wake-ups from before `time`, oldest first. A cursor that has not read them ends instead of
     * missing them. Keeps the newest wake-up, because cursors wait at it. If that one is outdated too,
     * adds an empty one, so that a later call can remove it. Returns whether no outdated wake-up with
     * ids is left.
     */
    async removeBefore(time: Date, now: Date) {
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
        await wakeups.insertOne(empty(emptyFrom, now), { writeConcern: { w: 1 } })
        return false
      }
    },

    /**
     * Yields the wake-ups of all processes until the signal aborts, and `CaughtUp` whenever it is known
     * up to which time every wake-up was yielded. For that it writes beats, rarely while `isNeeded`
     * returns false. Ends or throws when the cursor is lost, or when writers have overwritten documents
     * that it did not read. Some wake-ups are then lost. While `hasPeers` returns false, no other process
     * is known, and own writes are read at once.
     */
    async *follow({
      from,
      kids,
      isNeeded = () => true,
      hasPeers = () => true,
      signal,
      now,
      monotonic = () => performance.now(),
    }: {
      from: string
      kids: string[]
      isNeeded?: () => boolean
      hasPeers?: () => boolean
      signal: AbortSignal
      now: () => number
      monotonic?: () => number
    }): AsyncIterable<WakeupDocument | CaughtUp> {
      const beat = (id: ObjectId) => writeBeat(id, from, kids, new Date(now())).finally(() => ownWrite.resolve())
      // A tailable cursor on an empty collection ends at once.
      await beat(new ObjectId())
      // Of the beats, only this first one is announced to the other cores.
      nudge?.announce()
      const cursor = wakeups.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: maxAwaitMs, batchSize })
      const proof = createCursorProof(beat, monotonic, isNeeded)
      let beats: NodeJS.Timeout | undefined
      // A read may wait at the server for longer than the interval of the beats.
      beatIfDue = () => {
        proof.beatIfDue()
        clearTimeout(beats)
        if (isNeeded()) beats = setTimeout(beatIfDue, beatEveryMs)
      }
      beatIfDue()
      const close = () => {
        ownWrite.resolve()
        cursor.close().catch(() => {})
      }
      signal.addEventListener('abort', close, { once: true })
      try {
        for (let taken = 0, askedAt = 0; !signal.aborted && !cursor.closed; ) {
          if (cursor.bufferedCount() === 0) askedAt = monotonic()
          const heard = nudge?.count() ?? 0
          ownWrite = Promise.withResolvers()
          const next = await cursor.tryNext()
          if (next !== null) {
            const { _id, ...wakeup } = next
            yield wakeup
            proof.received(_id)
            taken += 1
          }
          if (cursor.bufferedCount() > 0) continue
          const asOf = proof.asOf()
          if (asOf !== undefined) yield { asOf }
          // After a full batch there may be more documents. A nudge since the read began ends the wait at
          // once. Without nudges, only an empty result that came without waiting makes a pause.
          const isRead = taken < batchSize
          taken = 0
          if (nudge && isRead) await Promise.race([nudge.after(heard, restMs), ownWrite.promise])
          if (!nudge && next === null && monotonic() - askedAt < minAwaitMs)
            await ownWriteWithin(hasPeers() ? pauseMs : restMs)
        }
      } finally {
        clearTimeout(beats)
        beatIfDue = () => {}
        signal.removeEventListener('abort', close)
        await cursor.close()
      }
    },
  }
}

export type WakeupStore = ReturnType<typeof createWakeupStore>
