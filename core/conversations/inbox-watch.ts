import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogEvent } from '../log/model.ts'
import type { Conversation, ConversationStore } from './conversation-store.ts'

/** A conversation that went on: how it is now, and what happened, in order. */
export interface ConversationChange {
  conversation: Conversation
  events: LogEvent[]
}

export interface InboxWatcher {
  /** Left out: every workspace. */
  readonly workspaceId?: string
  changed(change: ConversationChange): void
  /** From here on every change is told; what came before may not have been. */
  ready(): void
}

export interface InboxWatch {
  /** Tells the watcher of every change from now on, until the answer is called. */
  add(watcher: InboxWatcher): () => void
  /** Looks for messages that no wake-up told of. */
  check(): Promise<void>
}

const conversationsPerRead = 200
const eventsPerRead = 2000
/** How far back the first look into a conversation goes, in events; what is older than the watch is not told. */
const firstLook = 50
const maxRemembered = 50_000
/** How late a conversation's document may follow its log, and clocks may differ, in milliseconds. */
const lateMs = 2000
const checkBackMs = 15_000
const maxChecked = 500

/** Follows the conversations of whole workspaces for operators' inboxes. It costs nothing while nobody watches here. */
export function createInboxWatch(dependencies: {
  events: Pick<EventStore, 'readManyAfter'>
  conversations: Pick<ConversationStore, 'find' | 'activeSince'>
  bus: Bus
  logger: Logger
  now: () => number
}): InboxWatch {
  const { events, conversations, bus, logger, now } = dependencies
  const watchers = new Set<InboxWatcher>()
  /** How far each conversation has been told. */
  const told = new LRUCache<string, number>({ max: maxRemembered })
  const behind = new Map<string, number>()
  /** What was told within the last `lateMs`, oldest first, with the place before it. */
  let recent: { conversationId: string; after: number; at: number }[] = []
  let since = 0

  const concerns = (watcher: InboxWatcher, workspaceId: string) =>
    watcher.workspaceId === undefined || watcher.workspaceId === workspaceId

  function fallBehind(conversationId: string, sequence: number) {
    if (sequence > (told.get(conversationId) ?? 0))
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
        logger.warn({ reason: (error as Error).name }, 'inbox not read, trying again')
        for (const [id, sequence] of targets) fallBehind(id, sequence)
        await delay(500)
      }
    },
  )

  async function read(targets: [string, number][]) {
    const found = await conversations.find(targets.map(([conversationId]) => conversationId))
    const watched = found.filter(({ workspaceId }) => [...watchers].some((watcher) => concerns(watcher, workspaceId)))
    if (watched.length === 0) return
    const ends = new Map(targets)
    const ranges = watched.map(({ conversationId }) => ({
      conversationId,
      after: told.get(conversationId) ?? Math.max(0, ends.get(conversationId)! - firstLook),
    }))
    const page = await events.readManyAfter(ranges, eventsPerRead, { transient: true })
    const at = now()
    recent = [...recent.filter((each) => each.at >= at - lateMs), ...ranges.map((range) => ({ ...range, at }))]
    const byConversation = Map.groupBy(page, ({ conversationId }) => conversationId)
    for (const conversation of watched) {
      const { conversationId } = conversation
      const news = byConversation.get(conversationId) ?? []
      const end = news.at(-1)?.sequence ?? 0
      if (end > 0) told.set(conversationId, Math.max(end, told.get(conversationId) ?? 0))
      if (page.length === eventsPerRead) fallBehind(conversationId, ends.get(conversationId)!)
      tell(
        conversation,
        news.filter(({ occurredAt }) => occurredAt.getTime() >= since),
      )
    }
  }

  function tell(conversation: Conversation, news: LogEvent[]) {
    if (news.length === 0) return
    const change = { conversation: withNews(conversation, news), events: news }
    for (const watcher of watchers) if (concerns(watcher, conversation.workspaceId)) watcher.changed(change)
  }

  /** A new watcher's list may be read from documents that do not have it yet. */
  function tellRecentAgain() {
    const from = now() - lateMs
    for (const { conversationId, after, at } of recent) {
      const end = told.get(conversationId)
      if (at < from || end === undefined) continue
      told.set(conversationId, Math.min(after, end))
      fallBehind(conversationId, end)
    }
    recent = []
    if (behind.size > 0) void reading.run()
  }

  function advanced(conversationId: string, sequence: number) {
    if (watchers.size === 0) return
    fallBehind(conversationId, sequence)
    if (behind.size > 0) void reading.run()
  }

  async function check() {
    const scopes = new Set([...watchers].map(({ workspaceId }) => workspaceId))
    for (const workspaceId of scopes) {
      const recent = await conversations.activeSince(workspaceId, new Date(now() - checkBackMs), maxChecked)
      for (const { conversationId, lastSequence = 0 } of recent) advanced(conversationId, lastSequence)
    }
  }

  bus.on('appended', ({ conversationId, sequence }) => advanced(conversationId, sequence))
  bus.on('advanced', (conversationId, { sequence }) => advanced(conversationId, sequence))
  bus.on('gap', () => {
    for (const watcher of watchers) watcher.ready()
    check().catch((error: Error) => logger.warn({ reason: error.name }, 'check for missed messages failed'))
  })

  return {
    add(watcher) {
      if (watchers.size === 0) {
        told.clear()
        recent = []
        since = now() - lateMs
      }
      watchers.add(watcher)
      watcher.ready()
      tellRecentAgain()
      return () => void watchers.delete(watcher)
    },

    check,
  }
}

/** The document follows the log, and may be behind what the events say. */
function withNews(conversation: Conversation, news: LogEvent[]): Conversation {
  const message = news.findLast((event) => event.message)
  const ahead = message && message.sequence > (conversation.lastSequence ?? 0)
  return {
    ...conversation,
    ...(ahead && {
      lastMessageAt: message.occurredAt,
      lastSequence: message.sequence,
      ...(message.message?.sessionId === undefined ? {} : { lastSessionId: message.message.sessionId }),
    }),
    status: news.at(-1)?.closed ? 'closed' : 'open',
  }
}
