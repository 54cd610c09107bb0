import type { TransientEventStore } from './transient-store.ts'

/**
 * Removes old transient events from the log, but never the last event of a conversation.
 *
 * Why no reader misses an event and no sequence is used twice:
 * - The end of a log never goes back. A sweep removes only events before an end that a majority
 *   has, so no failover rolls the end back. An end is removed only after a later one exists. So
 *   concurrent or interrupted sweeps are safe.
 * - A hole is never filled. A writer fills n + 1 only if it believes that n is the end. It would
 *   have to believe so for longer than the event existed. `log-heads.ts` forgets an end after a
 *   fraction of that time, by two clocks.
 * - Readers take the events after their position in order and do not expect the next number. A feed
 *   reads up to an announced end; if a read has no more events, there are none (`feeds.ts`). A
 *   replay skips transient events, continues to the feed's position and reports it with `advanced`
 *   (`stream-subscriptions.ts`).
 * - The position of a removed event stays valid, because positions are compared and never looked up
 *   (`replay-window.ts`).
 */
export function createTransientSweep({ store, now }: { store: TransientEventStore; now: () => number }) {
  return {
    /** Runs one pass over at most `batch` events. Returns whether there may be more. */
    async sweep(batch = 1000): Promise<{ removed: number; more: boolean }> {
      const before = new Date(now())
      const { conversationIds, seen } = await store.due(before, batch)
      if (seen === 0) return { removed: 0, more: false }
      const ends = await store.committedEnds(conversationIds)
      let removed = 0
      for (const conversationId of conversationIds) {
        const end = ends.get(conversationId)
        if (end !== undefined) removed += await store.removeBefore(conversationId, end, before)
      }
      return { removed, more: seen === batch }
    },
  }
}

export type TransientSweep = ReturnType<typeof createTransientSweep>
