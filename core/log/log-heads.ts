import { createLruCache } from '../../platform/lru-cache.ts'
import { perCore } from '../core.ts'
import type { LogEnd } from '../log-event.ts'
import { type EventStore, eventsOf } from './event-store.ts'
import { transientMs } from './transient-sweep.ts'

interface CachedEnd extends LogEnd {
  /**
   * Time when the read of the end began, on two clocks. The wall clock (`wallAt`) may be set back.
   * The monotonic clock (`at`) may stop while the machine sleeps.
   */
  at: number
  wallAt: number
}

const maxEntries = 100_000
const rememberMs = transientMs / 6

export const logHeadsOf = perCore((core) => {
  const { bus, now } = core
  const logHeads = createLogHeads(eventsOf(core), { now })
  bus.on('advanced', logHeads.advance)
  return logHeads
})

/**
 * Caches the ends of logs, so that an append needs only one insert. If a cached end is outdated, the
 * unique index rejects the write. The index cannot do this if a sweep has removed the event after the
 * cached end, so an end is cached for much less than the age at which transient events are removed.
 */
export function createLogHeads(
  events: Pick<EventStore, 'ends'>,
  { now, monotonic = () => performance.now() }: { now: () => number; monotonic?: () => number },
) {
  const heads = createLruCache<CachedEnd>(maxEntries)

  function remember(conversationId: string, { sequence, closed, waitingSince }: LogEnd, at = present()) {
    heads.set(conversationId, { sequence, closed, waitingSince, ...at })
  }

  const present = () => ({ at: monotonic(), wallAt: now() })

  function fresh(conversationId: string) {
    const known = heads.get(conversationId)
    if (!known) return undefined
    const age = Math.max(monotonic() - known.at, now() - known.wallAt)
    return age <= rememberMs ? known : undefined
  }

  async function learn(conversationIds: string[], read: EventStore['ends']) {
    // The clocks are read before the database, so that the age of an entry is never underestimated.
    const asked = present()
    const ends = await read(conversationIds)
    for (const id of conversationIds) {
      const end = ends.get(id) ?? { sequence: 0, closed: false }
      const known = fresh(id)
      if (!known || known.sequence <= end.sequence) remember(id, end, asked)
    }
    return ends
  }

  return {
    learn,
    /** Returns the presumed end of each conversation's log. The end may be outdated. */
    async get(conversationIds: string[]): Promise<LogEnd[]> {
      const unknown = conversationIds.filter((id) => !fresh(id))
      if (unknown.length > 0) await learn(unknown, (ids) => events.ends(ids))
      return conversationIds.map((id) => heads.get(id) ?? { sequence: 0, closed: false })
    },

    /** Caches an end: the sequence of an event that the log has, and the state after that event. */
    advance(conversationId: string, end: LogEnd) {
      if ((heads.get(conversationId)?.sequence ?? -1) < end.sequence) remember(conversationId, end)
    },

    /** Drops ends that were wrong. */
    forget(conversationIds: string[]) {
      for (const id of conversationIds) heads.delete(id)
    },
  }
}
