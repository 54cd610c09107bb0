import { createLruCache } from '../../platform/lru-cache.ts'
import type { LogEvent } from '../log-event.ts'
import { isInFeed } from './model.ts'

/** Events of one conversation that this process has appended, and whose entries in the feed are missing. */
export interface AppendedEvents {
  conversationId: string
  /** The events in order, without gaps. Undefined if more may be missing: the log must then be read. */
  events: LogEvent[] | undefined
  workspaceId: string
  end: number
}

interface Waiting {
  events: LogEvent[] | undefined
  end: number
  since: number
}

/** Maximum number of waiting conversations. A follower of the logs adds the entries of others. */
const maxWaiting = 10_000
const maxKnown = 50_000
const maxEvents = 200
/** Shorter than the minute after which a removal also removes entries that were added late. */
const maxAgeMs = 20_000

/**
 * Remembers what this process has appended. A conversation whose entries are complete up to a sequence
 * lacks just these events if they follow it, so its log is not read.
 */
export function createAppendedEventsMemory(monotonic: () => number = () => performance.now()) {
  const waiting = new Map<string, Waiting>()
  /** The sequence up to which the entries of a conversation are complete. */
  const known = createLruCache<{ workspaceId: string; through: number }>(maxKnown)

  function extend(conversation: Waiting, event: LogEvent) {
    const { events, end } = conversation
    const isNext = events !== undefined && event.sequence === end + 1 && events.length < maxEvents
    if (isNext) events.push(event)
    else conversation.events = undefined
    conversation.end = Math.max(end, event.sequence)
  }

  return {
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

    lagMs() {
      const [oldest] = waiting.values()
      return oldest === undefined ? 0 : monotonic() - oldest.since
    },

    workspaceOf: (conversationId: string) => known.get(conversationId)?.workspaceId,

    /** Takes waiting conversations. The caller must then call `complete` or `putBack`. */
    take(count: number): AppendedEvents[] {
      const taken = [...waiting].slice(0, count)
      for (const [conversationId] of taken) waiting.delete(conversationId)
      return taken.map(([conversationId, { events, end, since }]) => {
        const { workspaceId = '', through } = known.get(conversationId) ?? {}
        const isAll = events !== undefined && through === events[0]!.sequence - 1 && monotonic() - since < maxAgeMs
        return { conversationId, events: isAll ? events : undefined, workspaceId, end }
      })
    },

    complete(conversationId: string, workspaceId: string, through: number) {
      known.set(conversationId, { workspaceId, through })
    },

    /** The logs of these conversations will be read. */
    putBack(conversations: Pick<AppendedEvents, 'conversationId' | 'end'>[]) {
      for (const { conversationId, end } of conversations) {
        if (waiting.has(conversationId) || waiting.size >= maxWaiting) continue
        waiting.set(conversationId, { events: undefined, end, since: monotonic() })
      }
    },
  }
}
