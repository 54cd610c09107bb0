import { createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { perCore } from '../core.ts'
import { eventsOf } from '../log/event-store.ts'
import type { LogEvent } from '../log-event.ts'
import { type StreamEvent, toStreamEvent } from './model.ts'
import { recentEventsOf } from './recent-events.ts'

type ResetReason = 'epoch_changed' | 'position_unknown' | 'window_exceeded'

export const replayPage = 100
/** Number of events in the first read. Most replays have fewer events. */
export const firstPage = 32

/**
 * `page` has the first events after `sequence`, at most `firstPage`. It is set only if the log was read
 * to find the start.
 */
export type ReplayStart =
  | { state: 'ready'; sequence: number; page?: StreamEvent[] }
  | { state: 'reset_required'; reason: ResetReason; at: Date }

/**
 * Position after which a stream starts: the greater one of the two fields, or the end of the log if
 * both are absent.
 */
export interface StartPoint {
  afterSequence?: number
  lastEventId?: string
}

/** Maximum numbers of conversations and of events in one shared read. */
const sharedReads = 50
const sharedEvents = 3000

/** Limits replays to the newest events, by number and by age in seconds. */
export const replayWindowOf = perCore((core) => {
  const { now } = core
  const { REPLAY_WINDOW_EVENTS: maxEvents, REPLAY_WINDOW_SECONDS: maxAge } = core.config
  const events = eventsOf(core)
  const recentEvents = recentEventsOf(core)

  /** Reads for many streams at once, because many resume after an outage, and most of them missed few events. */
  const readShared = createBatchLoader<LogEvent[]>(
    async (keys) => {
      const ranges = keys.map((key) => {
        const [conversationId = '', after = '', limit = '', transient] = key.split(' ')
        return { conversationId, after: Number(after), limit: Number(limit), isAll: transient === 'true' }
      })
      const wanted = ranges.reduce((sum, { limit }) => sum + limit, 0)
      const maxFound = Math.min(sharedEvents, wanted)
      const places = ranges.map(({ conversationId, after }) => ({ conversationId, after }))
      const found = await events.readManyAfter(places, maxFound, { transient: ranges.some(({ isAll }) => isAll) })
      // The result is sorted by conversation. A full result may miss events of its last conversation and
      // of later ones. Their streams then read their own pages.
      const brokenOff = found.length === maxFound ? found.at(-1)?.conversationId : undefined
      const byConversation = Map.groupBy(found, ({ conversationId }) => conversationId)
      return new Map(
        ranges.flatMap(({ conversationId, after, limit, isAll }, index) => {
          const known = (byConversation.get(conversationId) ?? []).filter(
            ({ sequence, transient }) => sequence > after && (isAll || !transient),
          )
          const isComplete = brokenOff === undefined || conversationId < brokenOff || known.length >= limit
          return isComplete ? [[keys[index]!, known]] : []
        }),
      )
    },
    { maxKeys: sharedReads },
  )

  const startOf = createBatchLoader((ids) => events.starts(ids))

  const reset = (reason: ResetReason): ReplayStart => ({ state: 'reset_required', reason, at: new Date(now()) })

  /**
   * Returns up to `limit` events after a sequence, in order; transient ones only on request. The log has
   * all events up to `through`.
   */
  async function read(conversationId: string, after: number, through: number, limit: number, transient = false) {
    const recent = recentEvents.read({ conversationId, after, through })
    if (recent) return recent.filter((event) => transient || !event.transient).slice(0, limit)
    const shared = await readShared(`${conversationId} ${after} ${limit} ${transient}`)
    const found = shared?.slice(0, limit) ?? (await events.readAfter({ conversationId, after }, limit, { transient }))
    return found.map(toStreamEvent)
  }

  return {
    read,
    /** Returns where a stream starts, or why it cannot start (contract, section 4). */
    async resolveStart(
      conversationId: string,
      { epoch, head, start }: { epoch: string; head: number; start: StartPoint },
    ): Promise<ReplayStart> {
      const last = start.lastEventId === undefined ? undefined : parseEventId(start.lastEventId)
      if (start.lastEventId !== undefined && last?.epoch !== epoch) return reset('epoch_changed')
      const positions = [last?.sequence, start.afterSequence].filter((sequence) => sequence !== undefined)
      if (positions.length === 0) return { state: 'ready', sequence: head }
      const sequence = Math.max(...positions)
      // Another process may have given the client a newer position, whose wake-up has not arrived here.
      if (sequence > head) {
        const end = (await events.ends([conversationId], { committed: true })).get(conversationId)
        return sequence > (end?.sequence ?? 0) ? reset('position_unknown') : { state: 'ready', sequence }
      }
      if (sequence === head) return { state: 'ready', sequence }
      const isTooMany =
        head - sequence > maxEvents &&
        (await events.countAfter({ conversationId, after: sequence }, maxEvents + 1)) > maxEvents
      if (isTooMany) return reset('window_exceeded')
      const page = await read(conversationId, sequence, head, firstPage)
      const isTooOld = page[0] !== undefined && page[0].at < now() - maxAge * 1000
      return isTooOld ? reset('window_exceeded') : { state: 'ready', sequence, page }
    },

    /** Returns the oldest sequence that can be replayed; 0 when there is none. `head` is the end of the log. */
    async oldest(conversationId: string, head: number) {
      if (head === 0) return 0
      const since = new Date(now() - maxAge * 1000)
      if (head > maxEvents) return events.oldestSequence(conversationId, { since, newest: maxEvents })
      const start = await startOf(conversationId)
      if (start && !start.transient && start.occurredAt >= since) return start.sequence
      return events.oldestSequence(conversationId, { since })
    },
  }
})

export function parseEventId(id: string): { epoch: string; sequence: number } | undefined {
  const match = /^([A-Za-z0-9]{1,32})-(0|[1-9][0-9]{0,9})$/.exec(id)
  return match ? { epoch: match[1]!, sequence: Number(match[2]) } : undefined
}
