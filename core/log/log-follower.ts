import { ObjectId } from 'mongodb'
import { createFollower } from '../concurrency/follower.ts'
import { perCore } from '../core.ts'
import type { LogEvent } from '../log-event.ts'
import { idAt, toEvent, withTexts } from './event-store.ts'

/** Position up to which a follower has read the logs. */
export interface FollowerDocument {
  /** Name of the follower. */
  _id: string
  after: ObjectId
}

/** A place in the order in which events were created. Undefined for the place before all events. */
type FollowerPosition = string | undefined

export const followerStoreOf = perCore(({ db: { followers, events } }) => ({
  position: async (name: string): Promise<FollowerPosition> =>
    (await followers.findOne({ _id: name }))?.after.toHexString(),

  /** Moves a position. Returns false if another core has moved it. */
  async advance(name: string, from: FollowerPosition, to: string) {
    const after = new ObjectId(to)
    if (from !== undefined) {
      const filter = { _id: name, after: new ObjectId(from) }
      return (await followers.updateOne(filter, { $set: { after } })).modifiedCount === 1
    }
    const created = await followers.updateOne({ _id: name }, { $setOnInsert: { after } }, { upsert: true })
    return created.upsertedCount === 1
  },

  /**
   * Returns the events that were created after a position, or since a time if there is no position, and
   * before a time, oldest first.
   */
  async eventsAfter(
    position: FollowerPosition,
    { since, before }: { since?: Date | undefined; before: Date },
    limit: number,
  ) {
    const from = position === undefined ? since && idAt(since) : new ObjectId(position)
    const found = await events
      .find(
        { _id: { ...(from && { $gt: from }), $lt: idAt(before) } },
        { projection: { operationKey: 0, inputHash: 0 } },
      )
      .sort({ _id: 1 })
      .limit(limit)
      .toArray()
    return { events: await withTexts(events, found.map(toEvent)), end: found.at(-1)?._id.toHexString() }
  },
}))

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
export function createLogFollower({
  name,
  store,
  handle,
  signal,
  now,
  startAgeMs,
}: {
  name: string
  store: ReturnType<typeof followerStoreOf>
  /** Must throw if the events must be read again later. */
  handle: (events: LogEvent[]) => Promise<void>
  signal: AbortSignal
  now: () => number
  startAgeMs?: number
}) {
  let from: FollowerPosition
  let end: FollowerPosition
  const follower = createFollower({
    batch: eventsPerRead,
    async read(limit) {
      from = await store.position(name)
      const since = startAgeMs === undefined ? undefined : new Date(now() - startAgeMs)
      const read = await store.eventsAfter(from, { since, before: new Date(now() - settledMs) }, limit)
      end = read.end
      return read.events
    },
    async handle(events) {
      await handle(events)
      // If the signal aborted, `handle` may have left events out.
      return !signal.aborted && end !== undefined && (await store.advance(name, from, end))
    },
    since: ({ occurredAt }) => new Date(occurredAt.getTime() + settledMs),
    now,
    signal,
  })
  return { catchUp: follower.run, lagMs: follower.lagMs }
}
