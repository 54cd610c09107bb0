import type { ObjectId } from 'mongodb'
import { createFollower } from '../concurrency/follower.ts'
import type { Core } from '../core.ts'
import type { LogEvent } from '../log-event.ts'
import { idAt, toEvent, withTexts } from './event-store.ts'

/** Position up to which a follower has read the logs. */
export interface FollowerDocument {
  /** Name of the follower. */
  _id: string
  after: ObjectId
}

/**
 * Minimum age in milliseconds of the events that a follower reads. An id has the second in which its core
 * created it. The insert takes less than a minute with all retries, and clocks differ by some seconds at
 * most. So the logs then contain all events with lower ids.
 */
const settledMs = 90_000
const eventsPerRead = 500

/**
 * Reads every event of all logs once more, oldest first, some time after it was written. The core that
 * appended the event derives data from it at once. The follower adds what a crash, a full queue or a failed
 * write left out.
 *
 * - All cores may run it. One of them moves the stored position, an id of an event, and the others then
 *   continue from there.
 * - The position moves only after `handle` has succeeded. So each event is handled at least once,
 *   also if a core dies, and `handle` must accept repeats.
 * - Late commits are not missed, because events younger than `settledMs` are not read. Events of one
 *   conversation may arrive out of order by as much as clocks differ. So `handle` must not depend on
 *   the order; it takes the order from the logs.
 *
 * @param startAgeMs age of the first event that the follower reads at its first start. Default: any.
 */
export function createLogFollower(
  core: Core,
  options: {
    name: string
    /** Must throw if the events must be read again later. */
    handle: (events: LogEvent[]) => Promise<void>
    signal?: AbortSignal
    startAgeMs?: number
  },
) {
  const { name, handle, signal, startAgeMs } = options
  const { db, now } = core
  const { followers, events } = db
  /** The stored position, and the id of the last event that was read. */
  let from: ObjectId | undefined
  let end: ObjectId | undefined

  /** Moves the position. Returns false if another core has moved it. */
  async function advance(after: ObjectId) {
    if (from) return (await followers.updateOne({ _id: name, after: from }, { $set: { after } })).modifiedCount === 1
    const created = await followers.updateOne({ _id: name }, { $setOnInsert: { after } }, { upsert: true })
    return created.upsertedCount === 1
  }

  const follower = createFollower({
    batch: eventsPerRead,
    async read(limit) {
      from = (await followers.findOne({ _id: name }))?.after
      const start = from ?? (startAgeMs === undefined ? undefined : idAt(new Date(now() - startAgeMs)))
      const before = idAt(new Date(now() - settledMs))
      const oldest = { projection: { operationKey: 0, inputHash: 0 }, sort: { _id: 1 }, limit } as const
      const found = await events.find({ _id: { ...(start && { $gt: start }), $lt: before } }, oldest).toArray()
      end = found.at(-1)?._id
      return withTexts(events, found.map(toEvent))
    },
    async handle(events) {
      await handle(events)
      // If the signal aborted, `handle` may have left events out.
      return !signal?.aborted && end !== undefined && (await advance(end))
    },
    since: ({ occurredAt }) => new Date(occurredAt.getTime() + settledMs),
    now,
    signal,
  })
  return { catchUp: follower.run, lagMs: follower.lagMs }
}
