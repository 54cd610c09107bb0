import type { EventStore, LogEnd } from './event-store.ts'

export interface LogHeads {
  /** The presumed end of each of these conversations' logs. */
  get(conversationIds: string[]): Promise<LogEnd[]>
  /** The log has an event at `end`, and `closed` is the state after that event. */
  advance(conversationId: string, end: LogEnd): void
  /** Reads the ends of these logs with `read` and caches them. Errors: those of `read`. */
  learn(conversationIds: string[], read: ReadEnds): Promise<Map<string, LogEnd>>
  /** Drops ends that were wrong. */
  forget(conversationIds: string[]): void
}

type ReadEnds = (conversationIds: string[]) => Promise<Map<string, LogEnd>>

interface CachedEnd extends LogEnd {
  /**
   * When the end was read, on two clocks: the wall clock may be set back, the other may stop while
   * the machine sleeps.
   */
  at: number
  wallAt: number
}

export interface LogHeadsOptions {
  now?: () => number
  monotonic?: () => number
  /**
   * How long an end is cached. A writer with an outdated end could write into the hole that a
   * removed transient event left. So this must be well below the age at which transient events are
   * removed.
   */
  rememberMs?: number
}

const maxEntries = 100_000

/**
 * Caches the ends of logs, so that a send needs only one insert. The unique index rejects an
 * outdated end. It cannot do so for an event that was removed, so entries expire soon.
 */
export function createLogHeads(
  events: Pick<EventStore, 'ends'>,
  { now = Date.now, monotonic = () => performance.now(), rememberMs = 10 * 60_000 }: LogHeadsOptions = {},
): LogHeads {
  const heads = new Map<string, CachedEnd>()

  function remember(conversationId: string, { sequence, closed }: LogEnd, at: { at: number; wallAt: number }) {
    heads.delete(conversationId)
    heads.set(conversationId, { sequence, closed, ...at })
    if (heads.size > maxEntries) {
      const [oldest] = heads.keys()
      if (oldest !== undefined) heads.delete(oldest)
    }
  }

  const present = () => ({ at: monotonic(), wallAt: now() })

  function fresh(conversationId: string): CachedEnd | undefined {
    const known = heads.get(conversationId)
    if (!known) return undefined
    const age = Math.max(monotonic() - known.at, now() - known.wallAt)
    return age <= rememberMs ? known : undefined
  }

  async function learn(conversationIds: string[], read: ReadEnds) {
    // Taken before the read: the result was true at that time or later.
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

    async get(conversationIds) {
      const unknown = conversationIds.filter((id) => !fresh(id))
      if (unknown.length > 0) await learn(unknown, (ids) => events.ends(ids))
      return conversationIds.map((id) => heads.get(id) ?? { sequence: 0, closed: false })
    },

    advance(conversationId, end) {
      if ((heads.get(conversationId)?.sequence ?? -1) < end.sequence) remember(conversationId, end, present())
    },

    forget(conversationIds) {
      for (const id of conversationIds) heads.delete(id)
    },
  }
}
