import { setTimeout as delay } from 'node:timers/promises'
import { type FeedEventType, feedEventTypes } from '../../contract/event-kinds.ts'
import { NoSlotError } from '../../platform/concurrency/slots.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { type Core, perCore } from '../core.ts'
import { endOfFeed } from '../deliveries/subscriptions.ts'
import { invalid, unavailable } from '../errors.ts'
import { type Lead, toLead } from '../leads/model.ts'
import { eventsOf } from '../log/event-store.ts'
import type { LogEvent } from '../log-event.ts'
import { field, integer, oneOf, validate } from '../rules.ts'
import { entriesAfter, lastBefore } from './feed-log.ts'
import { type FeedEntry, feedHint } from './model.ts'

export interface FeedEvent {
  cursor: string
  entry: FeedEntry
  event?: LogEvent
  lead?: Lead
}

interface FeedQuery {
  workspaceId: string
  /** Empty for the oldest entry. */
  cursor: string
  /** Where to begin without a cursor. Default: at the oldest entry. */
  since?: Date
  /** Empty for all types. */
  types: string[]
  limit?: number
}

const maxPage = 100
const defaultPage = 50
const maxRead = 1_000
/** A feed counts as read for this time, which is longer than the wait of a call. */
const readWithinMs = 60_000
const maxReads = 10_000
/** Maximum difference of the cores' clocks, which write the times of the entries. */
const clocksApartMs = 2_000
const cursorFormat = /^(?:(\w+)\.)?(\w+)\.(\d{1,15})$/

/** Finds hidden ones too: a removal may show them again, and a reader would miss their events. */
export async function findConversations({ db }: Core, conversationIds: string[]) {
  if (conversationIds.length === 0) return []
  const projection = { workspaceId: 1, createdAt: 1, erasing: 1 }
  return db.conversations.find({ _id: { $in: conversationIds } }, { projection }).toArray()
}

/** Finds hidden leads too, except those of erased visitors. */
async function findLeads({ db }: Core, leadIds: string[]): Promise<Lead[]> {
  if (leadIds.length === 0) return []
  return (await db.leads.find({ _id: { $in: leadIds }, erasing: { $ne: true } }).toArray()).map(toLead)
}

const cursorOf = ({ history }: Core, workspaceId: string, place: number) =>
  (history === '' ? [workspaceId, place] : [history, workspaceId, place]).join('.')

/** The error of a cursor after which entries were removed names the oldest cursor. */
async function removed(core: Core, workspaceId: string) {
  const [oldest] = await entriesAfter(core, workspaceId, 0, 1)
  const rule = `oldest ${cursorOf(core, workspaceId, (oldest?.number ?? 1) - 1)}`
  return invalid('/cursor', rule)
}

async function placeOf(core: Core, { workspaceId, cursor, since }: FeedQuery) {
  if (cursor === '') return since && lastBefore(core, workspaceId, new Date(since.getTime() - clocksApartMs))
  const [, of = '', workspace, place = ''] = cursorFormat.exec(cursor) ?? []
  if (place === '') throw invalid('/cursor', 'format')
  if (workspace !== workspaceId) throw invalid('/cursor', 'cursor')
  if (of !== core.history) throw await removed(core, workspaceId)
  return Number(place)
}

async function entriesOf(core: Core, query: FeedQuery, place: number | undefined): Promise<FeedEntry[]> {
  const { workspaceId, limit = defaultPage } = query
  const found = await entriesAfter(core, workspaceId, place ?? 0, limit)
  if (place !== undefined && found[0] && found[0].number !== place + 1) throw await removed(core, workspaceId)
  if (place && !found[0] && place > (await endOfFeed(core, workspaceId))) throw invalid('/cursor', 'cursor')
  return found
}

/** Returns entries with their content, without those whose source was removed. */
export async function withContent(core: Core, workspaceId: string, entries: FeedEntry[]): Promise<FeedEvent[]> {
  const logged = entries.filter(({ sequence = 0 }) => sequence > 0)
  const places = logged.map(({ conversationId = '', sequence = 0 }) => ({ conversationId, sequence }))
  const [found, conversations, leads] = await Promise.all([
    eventsOf(core).at(places),
    findConversations(core, [...new Set(entries.flatMap(({ conversationId }) => conversationId ?? []))]),
    findLeads(core, [...new Set(entries.flatMap(({ leadId }) => leadId ?? []))]),
  ])
  const byPlace = new Map(found.map((event) => [`${event.conversationId} ${event.sequence}`, event]))
  const readable = new Set(conversations.flatMap((each) => (each.erasing === true ? [] : each._id)))
  const byId = new Map(leads.map((lead) => [lead.leadId, lead]))
  return entries.flatMap((entry): FeedEvent[] => {
    const { source, conversationId, sequence = 0, leadId } = entry
    const cursor = cursorOf(core, workspaceId, entry.number)
    if (source === undefined) return []
    const named = byId.get(leadId ?? '')
    const lead = named?.workspaceId === workspaceId ? named : undefined
    if (leadId !== undefined && conversationId === undefined) return lead ? [{ cursor, entry, lead }] : []
    if (conversationId === undefined) return [{ cursor, entry }]
    if (!readable.has(conversationId)) return []
    if (sequence === 0) return [{ cursor, entry }]
    const event = byPlace.get(`${conversationId} ${sequence}`)
    return event && !event.transient ? [{ cursor, entry, event, ...(lead && { lead }) }] : []
  })
}

/** Returns the first events after a place, and the place after the last entry that was read. */
async function pageAfter(core: Core, query: FeedQuery, place: number | undefined) {
  const isWanted = ({ type }: FeedEntry) => query.types.length === 0 || query.types.includes(type)
  let end = place
  for (let read = 0; read < maxRead; ) {
    const entries = await entriesOf(core, query, end)
    const last = entries.at(-1)
    if (!last) break
    read += entries.length
    end = last.number
    const found = await withContent(core, query.workspaceId, entries.filter(isWanted))
    if (found.length > 0) return { found, end }
  }
  return { found: [], end }
}

/** Reads feeds. A cursor names the history of the data, because a restored backup gives numbers again. */
export const feedReaderOf = perCore((core) => {
  const { reads, bus, closing } = core
  /** Calls that wait, by the id of their hint. */
  const waiting = new Map<string, Set<() => void>>()
  const readTimes = createLruCache<number>(maxReads)
  let readAt = Number.NEGATIVE_INFINITY

  const wakeAll = () => {
    for (const wakes of waiting.values()) for (const wake of wakes) wake()
  }
  bus.on('gap', wakeAll)
  closing.signal.addEventListener('abort', wakeAll)
  bus.on('changed', (ids) => {
    if (waiting.size > 0) for (const id of ids) for (const wake of waiting.get(id) ?? []) wake()
  })

  async function inPlace<T>(signal: AbortSignal, read: () => Promise<T>) {
    const slot = await reads.enter([], signal).catch((error: unknown) => {
      throw error instanceof NoSlotError ? unavailable(error) : error
    })
    return read().finally(slot.leave)
  }

  function onHint(id: string, wake: () => void) {
    const wakes = waiting.get(id) ?? new Set()
    waiting.set(id, wakes.add(wake))
    return () => {
      wakes.delete(wake)
      if (wakes.size === 0) waiting.delete(id)
    }
  }

  return {
    /** Returns the events after a cursor, or waits for one until `wake`. Errors: `ValidationFailed`. */
    async read(
      query: FeedQuery,
      { waitMs, signal, wake = signal }: { waitMs: number; signal: AbortSignal; wake?: AbortSignal },
    ) {
      validate(
        field('/limit', query.limit, integer(1, maxPage)),
        ...query.types.map((type, index) => field(`/types/${index}`, type as FeedEventType, oneOf(...feedEventTypes))),
      )
      readAt = performance.now()
      readTimes.set(query.workspaceId, readAt)
      let place = await inPlace(signal, () => placeOf(core, query))
      const until = performance.now() + waitMs
      for (;;) {
        // Listens before the read, so that no hint is lost.
        const { promise: hinted, resolve } = Promise.withResolvers<void>()
        const leave = onHint(feedHint(query.workspaceId), resolve)
        try {
          const { found, end } = await inPlace(signal, () => pageAfter(core, query, place))
          const hasMoved = end !== place
          place = end
          if (found.length > 0 || performance.now() >= until || wake.aborted || closing.signal.aborted)
            return { events: found, cursor: cursorOf(core, query.workspaceId, place ?? 0) }
          if (!hasMoved) await untilHint(hinted, until - performance.now(), wake)
        } finally {
          leave()
        }
      }
    },

    /** Reports removed conversations and leads until the returned function is called. */
    onRemoved(workspaceId: string, listener: (ids: string[]) => void): () => void {
      const listen = (of: string, ids: string[]) => void (of === workspaceId && listener(ids))
      bus.on('removed', listen)
      return () => void bus.off('removed', listen)
    },

    /** Whether somebody has read this feed lately, or without an id any feed. */
    isRead(workspaceId?: string) {
      const at = workspaceId === undefined ? readAt : readTimes.get(workspaceId)
      return at !== undefined && performance.now() - at < readWithinMs
    },
  }
})

/** Resolves at the hint, after the time, or when the signal aborts. */
async function untilHint(hinted: Promise<void>, ms: number, signal: AbortSignal) {
  const over = new AbortController()
  const time = delay(ms, undefined, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => {})
  await Promise.race([hinted, time])
  over.abort()
}
