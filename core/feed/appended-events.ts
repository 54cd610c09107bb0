import { createLruCache } from '../../platform/lru-cache.ts'
import type { LogEvent } from '../log-event.ts'
import { isInFeed } from './model.ts'

/**
 * Events that this process has appended to the log of one conversation. Their entries in the feed
 * are still missing.
 */
export interface AppendedEvents {
  conversationId: string
  /** In order, without gaps. Undefined if the log must be read, because more events may be missing. */
  events: LogEvent[] | undefined
  workspaceId: string
  /** Sequence of the last event. */
  end: number
}

interface Waiting {
  events: LogEvent[] | undefined
  end: number
  since: number
}

/**
 * Maximum number of conversations that wait. A follower of the logs adds the entries of other
 * conversations.
 */
const maxWaiting = 10_000
const maxKnown = 50_000
/** Further events of a conversation are read from its log. */
const maxEvents = 200
/** A removal of data also removes entries that were added late, but not later than a minute. */
const maxAgeMs = 20_000

/**
 * Remembers what this process has appended, so that most entries are added without a read of the log.
 * A conversation whose entries are complete up to a sequence, and whose next event this process has
 * appended, lacks just what this process has appended.
 */
export function createAppendedEventsMemory(monotonic: () => number = () => performance.now()) {
  const waiting = new Map<string, Waiting>()
  /** For each conversation, the sequence up to which its entries are complete. */
  const known = createLruCache<{ workspaceId: string; through: number }>(maxKnown)

  function extend(conversation: Waiting, event: LogEvent) {
    const { events, end } = conversation
    const isNext = events !== undefined && event.sequence === end + 1 && events.length < maxEvents
    if (isNext) events.push(event)
    else conversation.events = undefined
    conversation.end = Math.max(end, event.sequence)
  }

  return {
    /** Adds an event. Returns true if entries are now missing. */
    add(event: LogEvent) {
      const { conversationId, sequence } = event
      const theirs = waiting.get(conversationId)
      if (theirs) {
        extend(theirs, event)
        return false
      }
      if (!isInFeed(event)) {
        const complete = known.get(conversationId)
        if (complete?.through === sequence - 1) complete.through = sequence
        return false
      }
      if (waiting.size >= maxWaiting) return false
      waiting.set(conversationId, { events: [event], end: sequence, since: monotonic() })
      return true
    },

    size: () => waiting.size,

    /** Time in milliseconds for which the oldest conversation has waited. */
    lagMs() {
      const [oldest] = waiting.values()
      return oldest === undefined ? 0 : monotonic() - oldest.since
    },

    workspaceOf: (conversationId: string) => known.get(conversationId)?.workspaceId,

    /** Takes conversations with missing entries. The caller must then call `complete` or `putBack`. */
    take(count: number): AppendedEvents[] {
      const taken = [...waiting].slice(0, count)
      for (const [conversationId] of taken) waiting.delete(conversationId)
      return taken.map(([conversationId, { events, end, since }]) => {
        const { workspaceId = '', through } = known.get(conversationId) ?? {}
        const isAll = events !== undefined && through === events[0]!.sequence - 1 && monotonic() - since < maxAgeMs
        return { conversationId, events: isAll ? events : undefined, workspaceId, end }
      })
    },

    /** Says that a conversation has all entries up to a sequence. */
    complete(conversationId: string, workspaceId: string, through: number) {
      known.set(conversationId, { workspaceId, through })
    },

    /** Puts conversations back whose entries could not be added. Their logs will be read. */
    putBack(conversations: Pick<AppendedEvents, 'conversationId' | 'end'>[]) {
      for (const { conversationId, end } of conversations) {
        if (waiting.has(conversationId) || waiting.size >= maxWaiting) continue
        waiting.set(conversationId, { events: undefined, end, since: monotonic() })
      }
    },
  }
}
