import type { LogEvent } from '../log-event.ts'
import type { FollowerStore } from './follower-store.ts'

export interface LogFollower {
  /** Handles the events after the stored position until none is left or the signal aborts. */
  catchUp(): Promise<void>
}

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
 * this kind, for the search entries now, and for the event feed later.
 *
 * - Each follower has a name and a stored position, an id of an event. All cores may run it. One of
 *   them moves the position, and the others then continue from there.
 * - The position moves only after `handle` has succeeded. So each event is handled at least once,
 *   also if a core dies, and `handle` must accept repeats.
 * - Late commits are not missed, because events younger than `settledMs` are not read. Events of one
 *   conversation may arrive out of order by as much as clocks differ. So `handle` must not depend on
 *   the order; it takes the order from the logs.
 *
 * How the event feed uses it (one feed for each workspace, without a global counter):
 *
 * - The feed of a workspace is itself a log: documents with `(workspaceId, number)` unique and
 *   `(workspaceId, source)` unique, where `source` is `<conversation> <sequence>` or `<lead> <version>`.
 *   A writer takes number n + 1 only if it has read n, as `event-log.ts` does with sequences. So the
 *   cursor of a reader is the number, no later commit appears before it, and any core may write.
 * - `bringUp(conversation, through)` reads the log after the newest feed entry of the conversation
 *   (index on workspace, conversation, sequence) and adds the events in order, one after the other.
 *   An entry that another core has added counts as added. So each conversation keeps its order.
 * - Every core calls `bringUp` for the events that it appends, a moment later. Readers wait on the bus
 *   event of the workspace. This path gives speed; a crash may leave its events out.
 * - The follower `feed` calls `bringUp` for each event that it reads. This path makes the feed
 *   complete after `settledMs`. Leads are read in the same way by the id of their last change.
 * - A feed entry refers to its source and has no text, so erasures have nothing to find. A reader gets
 *   the content from the log, and an entry whose source is gone is skipped. A TTL index removes
 *   entries after 30 days; a cursor below the oldest number is an error that names that number.
 */
export function createLogFollower(dependencies: {
  name: string
  store: FollowerStore
  /** Must accept events that it has handled before. Throws to read the events again later. */
  handle: (events: LogEvent[]) => Promise<void>
  signal: AbortSignal
  now: () => number
}): LogFollower {
  const { name, store, handle, signal, now } = dependencies
  return {
    async catchUp() {
      while (!signal.aborted) {
        const from = await store.position(name)
        const { events, end } = await store.eventsAfter(from, new Date(now() - settledMs), eventsPerRead)
        if (end === undefined) return
        await handle(events)
        // If the signal aborted, `handle` may have left events out.
        if (signal.aborted || !(await store.advance(name, from, end))) return
      }
    },
  }
}
