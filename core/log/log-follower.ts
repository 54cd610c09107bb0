import { createFollower } from '../concurrency/follower.ts'
import type { LogEvent } from '../log-event.ts'
import type { FollowerPosition, FollowerStore } from './follower-store.ts'

/**
 * Minimum age in milliseconds of the events that a follower reads. An id has the second in which its
 * core created it. The insert of an event takes less than a minute with all retries, and the clocks
 * of cores differ by some seconds at most. So when a follower reads an event, the logs already
 * contain all events with lower ids.
 */
const settledMs = 90_000
const eventsPerRead = 500

/**
 * Reads every event of all logs once more, oldest first, some time after it was written. What is
 * derived from the logs is written at once by the core that appends an event. The follower makes it
 * complete: it finds what a crash, a full queue or a failed write left out. It is the only reader of
 * this kind, for the search entries and for the event feed.
 *
 * - Each follower has a name and a stored position, an id of an event. All cores may run it. One of
 *   them moves the position, and the others then continue from there.
 * - The position moves only after `handle` has succeeded. So each event is handled at least once,
 *   also if a core dies, and `handle` must accept repeats.
 * - Late commits are not missed, because events younger than `settledMs` are not read. Events of one
 *   conversation may arrive out of order by as much as clocks differ. So `handle` must not depend on
 *   the order; it takes the order from the logs.
 */
export function createLogFollower(dependencies: {
  name: string
  store: FollowerStore
  /** Must accept events that it has handled before. Throws to read the events again later. */
  handle: (events: LogEvent[]) => Promise<void>
  signal: AbortSignal
  now: () => number
  /** Age in milliseconds of the first event that the follower reads at its first start. Default: any. */
  startAgeMs?: number
}) {
  const { name, store, handle, signal, now, startAgeMs } = dependencies

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
