import type { LogEvent } from '../log-event.ts'
import type { FollowerStore } from './follower-store.ts'

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

  let lagMs = 0

  return {
    /** Time in milliseconds by which this process is behind the events that it may read. */
    lagMs: (): number => lagMs,
    /** Handles the events after the stored position until none is left or the signal aborts. */
    async catchUp(): Promise<void> {
      while (!signal.aborted) {
        const from = await store.position(name)
        const since = startAgeMs === undefined ? undefined : new Date(now() - startAgeMs)
        const range = { since, before: new Date(now() - settledMs) }
        const { events, end } = await store.eventsAfter(from, range, eventsPerRead)
        lagMs = events[0] ? now() - settledMs - events[0].occurredAt.getTime() : 0
        if (end === undefined) return
        await handle(events)
        // If the signal aborted, `handle` may have left events out.
        if (signal.aborted || !(await store.advance(name, from, end))) return
      }
    },
  }
}

export type LogFollower = ReturnType<typeof createLogFollower>
