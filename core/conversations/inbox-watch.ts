import { setTimeout as delay } from 'node:timers/promises'
import { createLruCache } from '../../platform/lru-cache.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { type Conversation, queuePlaceOf } from '../log/conversation-model.ts'
import { findConversations } from '../log/conversation-store.ts'
import { eventsOf } from '../log/event-store.ts'
import { type GrowingText, type GrownPart, isEntry, type LogEvent } from '../log-event.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { botAuthorOf, isRating, ratingOf } from './model.ts'

interface ConversationChange {
  conversation: Conversation
  events: LogEvent[]
}

interface InboxWatcher {
  /** Limits the watch to one workspace. Absent for all workspaces. */
  readonly workspaceId?: string
  changed(change: ConversationChange): void
  /** Called when messages that grow have gained text, at most about nine times a second. */
  grew(parts: GrownPart[]): void
  /** Called when a conversation may have a new note. */
  noted(conversationId: string): void
  /** Called when conversations were erased or hidden for their removal. */
  removed(conversationIds: string[]): void
  /** Called when the watcher begins to receive every change. It must then read the list again. */
  ready(): void
}

const conversationsPerRead = 200
const eventsPerRead = 2000
/** Number of events at the end of a log that the first read of a conversation covers. */
const firstReadEvents = 50
const maxRemembered = 50_000
/** Maximum time by which a conversation's document lags behind its log, including clock differences. */
const lateMs = 2000
const checkBackMs = 15_000
const maxChecked = 500

/**
 * Reports changes in the conversations of whole workspaces to operators' inboxes. Does nothing
 * without watchers.
 */
export const inboxWatchOf = perCore((core) => {
  const { bus, logger, now } = core
  const watchers = new Set<InboxWatcher>()
  const reported = createLruCache<number>(maxRemembered)
  const behind = new Map<string, number>()
  /** Workspaces of conversations with messages that grow. */
  const workspaces = createLruCache<string>(maxRemembered)
  /** How much of a growing message the watchers have got, in code points and in characters. */
  const told = createLruCache<{ length: number; chars: number }>(maxRemembered)
  /** Reports of the last `lateMs` milliseconds, oldest first. */
  let recent: { change: ConversationChange; at: number }[] = []
  let since = 0

  const isWatching = (watcher: InboxWatcher, workspaceId: string) =>
    watcher.workspaceId === undefined || watcher.workspaceId === workspaceId
  const watchersOf = (workspaceId: string) => [...watchers].filter((watcher) => isWatching(watcher, workspaceId))

  function enqueue(conversationId: string, sequence: number) {
    if (sequence > (reported.get(conversationId) ?? 0))
      behind.set(conversationId, Math.max(sequence, behind.get(conversationId) ?? 0))
  }

  const reading = createSingleFlight(
    () => behind.size > 0,
    async () => {
      const targets = [...behind].slice(0, conversationsPerRead)
      for (const [conversationId] of targets) behind.delete(conversationId)
      if (watchers.size === 0) return
      try {
        await read(targets)
      } catch (error) {
        logFailure(logger, 'inbox read failed; will retry')(error)
        for (const [id, sequence] of targets) enqueue(id, sequence)
        await delay(500)
      }
    },
  )

  async function read(targets: [string, number][]) {
    const ends = new Map(targets)
    const found = await findConversations(core, [...ends.keys()])
    const watched = found.filter(({ workspaceId }) => watchersOf(workspaceId).length > 0)
    if (watched.length === 0) return
    const ranges = watched.map(({ conversationId }) => ({
      conversationId,
      after: reported.get(conversationId) ?? Math.max(0, ends.get(conversationId)! - firstReadEvents),
    }))
    const page = await eventsOf(core).readManyAfter(ranges, eventsPerRead, { transient: true })
    recent = recent.filter(({ at }) => at >= now() - lateMs)
    const byConversation = Map.groupBy(page, ({ conversationId }) => conversationId)
    for (const conversation of watched) {
      const { conversationId } = conversation
      const newEvents = byConversation.get(conversationId) ?? []
      const end = newEvents.at(-1)?.sequence ?? 0
      if (end > 0) reported.set(conversationId, Math.max(end, reported.get(conversationId) ?? 0))
      if (page.length === eventsPerRead) enqueue(conversationId, ends.get(conversationId)!)
      report(conversation, newEvents)
    }
  }

  function report(conversation: Conversation, found: LogEvent[]) {
    const events = found.filter(({ occurredAt }) => occurredAt.getTime() >= since)
    if (events.length === 0) return
    const change = { conversation: withEvents(conversation, events), events }
    recent.push({ change, at: now() })
    for (const watcher of watchersOf(conversation.workspaceId)) watcher.changed(change)
  }

  /** A new watcher needs them, because it may read its list from documents that lag behind the log. */
  function reportRecentAgain(watcher: InboxWatcher) {
    const from = now() - lateMs
    for (const { change, at } of recent)
      if (at >= from && isWatching(watcher, change.conversation.workspaceId)) watcher.changed(change)
  }

  function advanced(conversationId: string, sequence: number) {
    if (watchers.size === 0) return
    enqueue(conversationId, sequence)
    if (behind.size > 0) void reading.run()
  }

  async function check() {
    const scopes = new Set([...watchers].map(({ workspaceId }) => workspaceId))
    for (const workspaceId of scopes) {
      const active = { workspaceId, lastMessageAt: { $gte: new Date(now() - checkBackMs) }, ...notErasing }
      const newest = { projection: { lastSequence: 1 }, sort: { lastMessageAt: -1 }, limit: maxChecked } as const
      const found = await core.db.conversations.find(active, newest).toArray()
      for (const { _id, lastSequence = 0 } of found) advanced(_id, lastSequence)
    }
  }

  async function reportNoted(conversationIds: string[]) {
    const found = await findConversations(core, conversationIds)
    for (const { conversationId, workspaceId } of found)
      for (const watcher of watchersOf(workspaceId)) watcher.noted(conversationId)
  }

  async function reportGrowth(texts: GrowingText[]) {
    const unknown = texts.flatMap(({ conversationId }) => (workspaces.has(conversationId) ? [] : conversationId))
    for (const { conversationId, workspaceId } of unknown.length > 0 ? await findConversations(core, unknown) : [])
      workspaces.set(conversationId, workspaceId)
    const byWorkspace = Map.groupBy(texts, ({ conversationId }) => workspaces.get(conversationId))
    for (const [workspaceId, theirs] of byWorkspace) {
      const parts = theirs.map(({ conversationId, messageId, sequence, text, length }) => {
        const { length: offset, chars } = told.get(messageId) ?? { length: 0, chars: 0 }
        told.set(messageId, { length, chars: text.length })
        return { conversationId, messageId, sequence, offset, text: text.slice(chars) }
      })
      if (workspaceId) for (const watcher of watchersOf(workspaceId)) watcher.grew(parts)
    }
  }

  const conversationsIn = (ids: string[]) => ids.filter((id) => id.startsWith('cnv_'))

  bus.on('growing', (texts) => {
    if (watchers.size === 0) return
    const failed = logFailure(logger, 'growth not reported; the console reads the message with its next part')
    reportGrowth(texts).catch(failed)
  })
  bus.on('changed', (ids) => {
    const conversationIds = conversationsIn(ids)
    if (watchers.size === 0 || conversationIds.length === 0) return
    const failed = logFailure(logger, 'notes not reported; the console reads them with the next event')
    reportNoted(conversationIds).catch(failed)
  })
  bus.on('removed', (workspaceId, ids) => {
    const conversationIds = conversationsIn(ids)
    recent = recent.filter(({ change }) => !conversationIds.includes(change.conversation.conversationId))
    if (conversationIds.length > 0) for (const watcher of watchersOf(workspaceId)) watcher.removed(conversationIds)
  })
  bus.on('appended', ({ conversationId, sequence }) => advanced(conversationId, sequence))
  bus.on('advanced', (conversationId, { sequence }) => advanced(conversationId, sequence))
  bus.on('gap', () => {
    for (const watcher of watchers) watcher.ready()
    check().catch(logFailure(logger, 'check for missed messages failed; will run again'))
  })

  return {
    add(watcher: InboxWatcher): () => void {
      if (watchers.size === 0) {
        reported.clear()
        recent = []
        since = now() - lateMs
      }
      // The new watcher gets the whole texts.
      told.clear()
      watchers.add(watcher)
      watcher.ready()
      reportRecentAgain(watcher)
      return () => void watchers.delete(watcher)
    },

    check,
  }
})

/** Applies new events to a conversation's document, which may lag behind the log. */
function withEvents(conversation: Conversation, newEvents: LogEvent[]): Conversation {
  const last = newEvents.at(-1)!
  const entry = newEvents.findLast(isEntry)
  const botAuthor = newEvents.map(botAuthorOf).findLast(Boolean)
  const rated = newEvents.findLast(isRating)
  const ahead = entry && entry.sequence > (conversation.lastSequence ?? 0)
  return {
    ...conversation,
    ...(ahead && {
      lastMessageAt: entry.occurredAt,
      lastSequence: entry.sequence,
      lastSessionId: entry.message?.sessionId ?? entry.sessionId ?? conversation.lastSessionId,
    }),
    ...(botAuthor && { botAuthor }),
    ...(rated && { rating: ratingOf(rated) }),
    status: last.closed ? 'closed' : 'open',
    queue: queuePlaceOf(last),
  }
}
