import type { EventStore, LogEnd } from './event-store.ts'

export interface LogHeads {
  /** The end of each of these conversations' logs, as far as it is known here: a good guess. */
  get(conversationIds: string[]): Promise<LogEnd[]>
  /** The log goes at least this far; `closed` is what its event there says of the conversation. */
  advance(conversationId: string, end: LogEnd): void
  /** Reads the ends of these logs for another purpose, and remembers what it finds. Errors: those of the reading. */
  learn(conversationIds: string[], read: ReadEnds): Promise<Map<string, LogEnd>>
  /** What is remembered has proved wrong. */
  forget(conversationIds: string[]): void
}

type ReadEnds = (conversationIds: string[]) => Promise<Map<string, LogEnd>>

interface Remembered extends LogEnd {
  /** When it was seen to be so, on two clocks: the one may be set back, the other may stand still with the machine. */
  at: number
  wallAt: number
}

export interface LogHeadsOptions {
  now?: () => number
  monotonic?: () => number
  /**
   * Milliseconds for which an end is remembered. A place in the log is filled again only by a writer that believes the
   * place before it to be the end, so this must be well below the age at which transient events are removed.
   */
  rememberMs?: number
}

const maxRemembered = 100_000

/**
 * Remembers where logs end, so that a send is one insert. The unique index corrects it where it is behind, and its memory
 * is short, since the index cannot speak for an event that was removed.
 */
export function createLogHeads(
  events: Pick<EventStore, 'ends'>,
  { now = Date.now, monotonic = () => performance.now(), rememberMs = 10 * 60_000 }: LogHeadsOptions = {},
): LogHeads {
  const heads = new Map<string, Remembered>()

  function remember(conversationId: string, { sequence, closed }: LogEnd, at: { at: number; wallAt: number }) {
    heads.delete(conversationId)
    heads.set(conversationId, { sequence, closed, ...at })
    if (heads.size > maxRemembered) {
      const [oldest] = heads.keys()
      if (oldest !== undefined) heads.delete(oldest)
    }
  }

  const present = () => ({ at: monotonic(), wallAt: now() })

  function fresh(conversationId: string): Remembered | undefined {
    const known = heads.get(conversationId)
    if (!known) return undefined
    const age = Math.max(monotonic() - known.at, now() - known.wallAt)
    return age <= rememberMs ? known : undefined
  }

  async function learn(conversationIds: string[], read: ReadEnds) {
    // From before the question: what it says was true at that time or later.
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
