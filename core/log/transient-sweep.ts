import type { TransientEventStore } from './transient-store.ts'

/**
 * Removes transient events from the log once they are old, and never the last event of a conversation.
 *
 * Why no reader misses an event by it, and no sequence is given out twice:
 * - The end of a log never falls back. Only what lies before an end is removed; an end that was read is itself removed only
 *   before a later one. So several sweeps at once, or one that was interrupted, come to the same. The ends are read as the
 *   majority has them, since a failover must not take back what made the removal right.
 * - A place within the log is not filled again. A writer takes place n + 1 if it believes n to be the end; a writer that
 *   believes so while n + 1 was there and has gone has not looked for longer than the event's life. `log-heads.ts` forgets
 *   an end after a fraction of that, by two clocks.
 * - Readers take whatever comes after their position, in order, and never count on the next number: a feed that is told of
 *   an end reads up to it, and where the read brings no more there is no more (`feeds.ts`); a replay does not see transient
 *   events at all, goes on to where the feed is, and says so with `advanced` (`subscriptions.ts`).
 * - A position that names a removed event is still a position: it is compared, never looked up (`replay-window.ts`).
 */
export function createTransientSweep({ store, now }: { store: TransientEventStore; now: () => number }) {
  return {
    /** One pass, bounded by the batch; whether there may be more. */
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
