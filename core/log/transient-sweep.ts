import { createJobs } from '../concurrency/job.ts'
import { type Core, dateOf } from '../core.ts'
import { eventsOf } from './event-store.ts'

/** Minimum time that events without replay (typing) stay in the log. */
export const transientMs = 3_600_000
const sweepEveryMs = 60_000

/**
 * Removes old transient events from the log, but never the last event of a conversation.
 *
 * These rules ensure that no reader misses an event and that no sequence is used twice:
 * - The end of a log never goes back. A sweep removes only events before an end that a majority
 *   has, so no failover rolls that end back. So concurrent or interrupted sweeps are safe.
 * - A hole is never filled. A writer writes event n + 1 only if n is its cached end of the log.
 *   `log-heads.ts` drops that end long before the sweep removes event n + 1, measured by two clocks.
 * - Readers take the events after their position in order and accept holes. A feed reads up to an
 *   announced end (`feeds.ts`). A replay skips transient events, continues to the feed's position and
 *   reports that position with `advanced` (`stream-subscriptions.ts`).
 * - The position of a removed event stays valid, because positions are compared and never looked up
 *   (`replay-window.ts`).
 *
 * Removes due events among the oldest `batch` candidates. `more` is true if there may be further ones.
 */
export async function sweepTransient(core: Core, batch = 1000): Promise<{ removed: number; more: boolean }> {
  const events = eventsOf(core)
  const before = dateOf(core)
  const { conversationIds, seen } = await events.dueTransient(before, batch)
  if (seen === 0) return { removed: 0, more: false }
  const ends = await events.ends(conversationIds, { committed: true })
  let removed = 0
  for (const conversationId of conversationIds) {
    const end = ends.get(conversationId)
    if (end) removed += await events.removeTransient(conversationId, end.sequence, before)
  }
  return { removed, more: seen === batch }
}

export const logJobs = (core: Core) =>
  createJobs(core, {
    'sweep of transient events': [
      sweepEveryMs,
      async () => {
        while ((await sweepTransient(core)).more);
      },
    ],
  })
