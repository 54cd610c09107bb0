import { createBatchLoader } from '../concurrency/batch-loader.ts'
import type { EventStore } from './event-store.ts'
import type { LogEvent } from './model.ts'

export type ResetReason = 'epoch_changed' | 'position_unknown' | 'window_exceeded'

/** Events in one read of a replay. */
export const replayPage = 100

/** `page` is what comes first after the place, where that had to be read. */
export type ReplayVerdict =
  | { state: 'ready'; sequence: number; page?: LogEvent[] }
  | { state: 'reset_required'; reason: ResetReason; at: Date }

/** After the greater of the two; the present end of the log when both are left out. */
export interface StartPoint {
  afterSequence?: number
  lastEventId?: string
}

export interface ReplayWindow {
  /** Where a stream starts, or why it cannot (contract, section 4). */
  judge(conversationId: string, log: { epoch: string; head: number; start: StartPoint }): Promise<ReplayVerdict>
  /** Sequence of the oldest event that is still replayed; 0 when there is none. */
  oldest(conversationId: string): Promise<number>
  /** Up to `replayPage` events after a place, in order. Small reads that are asked for at once share one query. */
  read(conversationId: string, after: number): Promise<LogEvent[]>
}

export interface ReplayWindowSettings {
  maxEvents: number
  /** Seconds. */
  maxAge: number
}

/** Conversations in one shared read, and the events that it may bring for all of them. */
const sharedReads = 50
const sharedEvents = 3000

/** What can still be replayed: the newest events, bounded in number and age. */
export function createReplayWindow(
  events: Pick<EventStore, 'ends' | 'readAfter' | 'readManyAfter' | 'countAfter' | 'oldestSequence'>,
  settings: ReplayWindowSettings,
  now: () => number,
): ReplayWindow {
  /** Many resume at once after an outage, most of them with little to catch up on. */
  const readShared = createBatchLoader<LogEvent[]>(
    async (keys) => {
      const ranges = keys.map((key) => {
        const [conversationId = '', after = ''] = key.split(' ')
        return { conversationId, after: Number(after) }
      })
      const found = await events.readManyAfter(ranges, sharedEvents)
      // They come by conversation: a full answer breaks off in the last one that it names, and knows nothing of those after it.
      const brokenOff = found.length === sharedEvents ? found.at(-1)?.conversationId : undefined
      const byConversation = Map.groupBy(found, ({ conversationId }) => conversationId)
      return new Map(
        ranges.flatMap(({ conversationId, after }, index) => {
          if (brokenOff !== undefined && conversationId >= brokenOff) return []
          const known = byConversation.get(conversationId) ?? []
          return [[keys[index]!, known.filter(({ sequence }) => sequence > after)]]
        }),
      )
    },
    { maxKeys: sharedReads },
  )

  function reset(reason: ResetReason): ReplayVerdict {
    return { state: 'reset_required', reason, at: new Date(now()) }
  }

  async function read(conversationId: string, after: number) {
    const shared = await readShared(`${conversationId} ${after}`)
    return shared?.slice(0, replayPage) ?? events.readAfter({ conversationId, after }, replayPage)
  }

  return {
    read,

    async judge(conversationId, { epoch, head, start }) {
      const last = start.lastEventId === undefined ? undefined : parseEventId(start.lastEventId)
      if (start.lastEventId !== undefined && last?.epoch !== epoch) return reset('epoch_changed')
      const positions = [last?.sequence, start.afterSequence].filter((sequence) => sequence !== undefined)
      if (positions.length === 0) return { state: 'ready', sequence: head }
      const sequence = Math.max(...positions)
      // The client may have it from another process, whose wake-up is still on its way to this one.
      if (sequence > head) {
        const end = (await events.ends([conversationId], { committed: true })).get(conversationId)
        return sequence > (end?.sequence ?? 0) ? reset('position_unknown') : { state: 'ready', sequence }
      }
      if (sequence === head) return { state: 'ready', sequence }
      const tooMany = async () =>
        head - sequence > settings.maxEvents &&
        (await events.countAfter({ conversationId, after: sequence }, settings.maxEvents + 1)) > settings.maxEvents
      if (await tooMany()) return reset('window_exceeded')
      const page = await read(conversationId, sequence)
      const tooOld = page[0] !== undefined && page[0].occurredAt.getTime() < now() - settings.maxAge * 1000
      return tooOld ? reset('window_exceeded') : { state: 'ready', sequence, page }
    },

    oldest(conversationId) {
      return events.oldestSequence(conversationId, {
        since: new Date(now() - settings.maxAge * 1000),
        newest: settings.maxEvents,
      })
    },
  }
}

/** `<epoch>-<sequence>`; undefined for anything else. */
export function parseEventId(id: string): { epoch: string; sequence: number } | undefined {
  const match = /^([A-Za-z0-9]{1,32})-(0|[1-9][0-9]{0,9})$/.exec(id)
  return match ? { epoch: match[1]!, sequence: Number(match[2]) } : undefined
}
