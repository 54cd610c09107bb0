import { createLruCache } from '../../platform/lru-cache.ts'
import { perCore } from '../core.ts'
import { type StreamEvent, toStreamEvent } from './model.ts'

/** The newest events of a log. Has every event from `first` to `last`. */
interface Tail {
  first: number
  last: number
  events: StreamEvent[]
  /** Estimated memory of the events, in bytes. */
  bytes: number
  /** Time of the last event, in milliseconds. */
  at: number
}

/**
 * Maximum age in milliseconds of an event when the next one is appended. So no event is in memory for
 * longer than twice this time, even if the database has already removed it.
 */
const keptMs = 300_000
const maxEvents = 100
const maxBytes = 64 * 1024 * 1024
/** Estimated memory of an event without its JSON, and of a log, in bytes. */
const eventBytes = 150
const logBytes = 500

/**
 * Keeps the newest events that this process has appended, so that a replay of a few missed events needs
 * no query.
 */
export const recentEventsOf = perCore(({ bus, now }) => {
  const tails = createLruCache<Tail>(maxBytes, ({ bytes }) => logBytes + bytes)

  bus.on('appended', (event) => {
    const { conversationId, sequence } = event
    const encoded = toStreamEvent(event)
    const { at } = encoded
    const known = tails.peek(conversationId)
    // An earlier event may have the text of a withdrawn message, or only the beginning of one that grew.
    const isOutdated = event.type === 'message.redacted' || event.type === 'message.completed' || encoded.growing
    const continues = known?.last === sequence - 1 && !isOutdated
    const before = continues ? known : { first: encoded.growing ? sequence + 1 : sequence, events: [], bytes: 0 }
    const events = encoded.growing ? before.events : [...before.events, encoded]
    let from = Math.max(0, events.length - maxEvents)
    while (events[from] && events[from]!.at < at - keptMs) from += 1
    const first = from > 0 ? events[from - 1]!.sequence + 1 : before.first
    const added = events.length > before.events.length ? [encoded] : []
    const bytes = before.bytes + memoryOf(added) - memoryOf(events.slice(0, from))
    tails.set(conversationId, { first, last: sequence, events: events.slice(from), bytes, at })
  })

  return {
    /** Returns the events after a sequence; undefined if memory lacks one up to `through`. */
    read({ conversationId, after, through }: { conversationId: string; after: number; through: number }) {
      const tail = tails.peek(conversationId)
      if (!tail || after < tail.first - 1 || tail.last < through) return undefined
      return tail.events.filter(({ sequence }) => sequence > after)
    },

    /** Drops the logs to which nothing was appended for `keptMs`. */
    dropOld() {
      // `rkeys` begins with the log whose last append is oldest.
      for (const conversationId of [...tails.rkeys()]) {
        if (tails.peek(conversationId)!.at >= now() - keptMs) return
        tails.delete(conversationId)
      }
    },
  }
})

/** V8 stores one byte per character if all characters are in Latin-1, else two. */
const charBytes = (text: string) => (/^[\0-\xff]*$/.test(text) ? 1 : 2)

const memoryOf = (events: StreamEvent[]) =>
  events.reduce((bytes, { json = '' }) => bytes + eventBytes + charBytes(json) * json.length, 0)
