import { createBatchLoader } from './batch-loader.ts'
import type { LogEvent } from './log-events.ts'
import type { EventStore } from './store/events.ts'

export type ResetReason = 'epoch_changed' | 'position_unknown' | 'window_exceeded'

export type ReplayVerdict =
  | { state: 'ready'; sequence: number }
  | { state: 'reset_required'; reason: ResetReason; at: Date }

export interface ReplayWindow {
  /** Where a stream starts, or why it cannot (contract, section 4). */
  judge(
    conversationId: string,
    log: { epoch: string; head: number; start: { afterSequence?: number; lastEventId?: string } },
  ): Promise<ReplayVerdict>
  /** Sequence of the oldest event that is still replayed; 0 when there is none. */
  oldest(conversationId: string): Promise<number>
  /** Events after a place, in order. Small reads that are asked for at once share one query. */
  read(conversationId: string, after: number, limit: number): Promise<LogEvent[]>
}

export interface ReplayWindowSettings {
  maxEvents: number
  /** Seconds. */
  maxAge: number
}

/** Conversations in one shared read, and the events that it may bring for all of them. */
const sharedReads = 100
const sharedEvents = 1000

/** What can still be replayed: the newest events, bounded in number and age. */
export function createReplayWindow(
  events: Pick<EventStore, 'heads' | 'readAfter' | 'readManyAfter' | 'countAfter' | 'oldestSequence'>,
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
      if (found.length === sharedEvents) return new Map()
      const byConversation = Map.groupBy(found, ({ conversationId }) => conversationId)
      return new Map(
        ranges.map(({ conversationId, after }, index) => [
          keys[index]!,
          (byConversation.get(conversationId) ?? []).filter(({ sequence }) => sequence > after),
        ]),
      )
    },
    { maxKeys: sharedReads },
  )

  function reset(reason: ResetReason): ReplayVerdict {
    return { state: 'reset_required', reason, at: new Date(now()) }
  }

  async function read(conversationId: string, after: number, limit: number) {
    const shared = await readShared(`${conversationId} ${after}`)
    return shared?.slice(0, limit) ?? events.readAfter({ conversationId, after }, limit)
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
        const heads = await events.heads([conversationId])
        return sequence > (heads.get(conversationId) ?? 0) ? reset('position_unknown') : { state: 'ready', sequence }
      }
      if (sequence === head) return { state: 'ready', sequence }
      const tooMany = async () =>
        head - sequence > settings.maxEvents &&
        (await events.countAfter({ conversationId, after: sequence }, settings.maxEvents + 1)) > settings.maxEvents
      if (await tooMany()) return reset('window_exceeded')
      const [first] = await read(conversationId, sequence, 1)
      const tooOld = first !== undefined && first.occurredAt.getTime() < now() - settings.maxAge * 1000
      return tooOld ? reset('window_exceeded') : { state: 'ready', sequence }
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
