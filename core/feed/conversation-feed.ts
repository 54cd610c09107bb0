import { createPace } from '../concurrency/pace.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { perCore } from '../core.ts'
import { eventsOf } from '../log/event-store.ts'
import { createLogFollower } from '../log/log-follower.ts'
import type { LogEvent } from '../log-event.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { type AppendedEvents, createAppendedEventsMemory } from './appended-events.ts'
import { addToFeed, addToFeeds, eventFanOutOf } from './event-fan-out.ts'
import { newestOf } from './feed-log.ts'
import { feedReaderOf, findConversations } from './feed-reader.ts'
import { creationOf, entryOf, feedKeptMs, isInFeed, loggedTypes, type NewFeedEntry } from './model.ts'

/** Conversations whose entries are added together. */
const batchSize = 50
const eventsPerRead = 200
/** Entries of older events may have been removed, so they are not added. */
const maxAgeMs = feedKeptMs - 86_400_000

/**
 * Adds the events of conversations to the feeds of their workspaces, behind the log. Any process may add
 * any event: the entries of a conversation are added in order, and one that exists counts as added. A
 * follower of the logs adds what a crash, a full queue or a failed write left out.
 */
export const conversationFeedOf = perCore((core) => {
  const { bus, logger, now } = core
  const { signal } = core.closing
  const events = eventsOf(core)
  const appended = createAppendedEventsMemory()
  const lagMs = () => Math.max(appended.lagMs(), follower.lagMs())
  const paced = createPace({ share: 1 / 5, lagMs, signal })
  let isActive = false

  /** Whether somebody reads the feed. Then entries are added at once, otherwise by `flush` in groups. */
  const isAwaited = (workspaceId: string | undefined) =>
    feedReaderOf(core).isRead(workspaceId) || eventFanOutOf(core).isFollowed(workspaceId)

  bus.on('appended', (event) => {
    const isMissing = appended.add(event)
    if (isMissing && isActive && isAwaited(appended.workspaceOf(event.conversationId))) flushing.run().catch(() => {}) // The job repeats it and logs the error.
  })

  /** Returns entries, but none for ends of sessions that another session of the visitor continues. */
  async function entriesOf(found: LogEvent[]): Promise<NewFeedEntry[]> {
    const ended = found.flatMap(({ type, sessionId }) => (type === 'session.closed' && sessionId) || [])
    const sessions = ended.length === 0 ? [] : await sessionStoreOf(core).find([...new Set(ended)])
    const continued = new Set(sessions.flatMap(({ sessionId, successor }) => (successor ? sessionId : [])))
    const isContinued = ({ type, sessionId = '' }: LogEvent) => type === 'session.closed' && continued.has(sessionId)
    return found.flatMap((event) => (event.transient || isContinued(event) ? [] : (entryOf(event) ?? [])))
  }

  /** Returns missing entries, oldest first. With them, the feed has all up to `through`. */
  async function missingOf(conversationId: string, createdAt: Date, newest: number | undefined) {
    const since = new Date(now() - maxAgeMs)
    const entries: NewFeedEntry[] = []
    let after = newest
    if (after === undefined) {
      const oldest = await events.oldestSequence(conversationId, { since })
      if (oldest === 0) return { entries, hasMore: false, through: 0 }
      if (createdAt >= since) entries.push(creationOf(conversationId, createdAt))
      after = oldest - 1
    }
    for (;;) {
      const found = await events.ofTypes(loggedTypes, { conversationId, after }, eventsPerRead)
      entries.push(...(await entriesOf(found)))
      const hasMore = found.length === eventsPerRead
      after = found.at(-1)?.sequence ?? after
      if (entries.length > 0 || !hasMore) return { entries, hasMore, through: after }
    }
  }

  async function addAppended(conversations: AppendedEvents[]) {
    for (const [workspaceId, theirs] of Map.groupBy(conversations, (each) => each.workspaceId))
      await addToFeed(core, workspaceId, await entriesOf(theirs.flatMap(({ events = [] }) => events)))
    for (const { conversationId, workspaceId, end } of conversations)
      appended.complete(conversationId, workspaceId, end)
  }

  /** Adds missing entries up to `ends` or further. Returns the conversations that may have more. */
  async function bringUp(conversationIds: string[], ends: ReadonlyMap<string, number>) {
    const found = await findConversations(core, conversationIds)
    const newest = await newestOf(core, conversationIds)
    const missing = await Promise.all(
      found.map(async ({ _id: conversationId, workspaceId, createdAt }) => ({
        conversationId,
        workspaceId,
        ...(await missingOf(conversationId, createdAt, newest.get(conversationId))),
      })),
    )
    await addToFeeds(core, missing)
    for (const { conversationId, workspaceId, hasMore, through } of missing)
      if (!hasMore) appended.complete(conversationId, workspaceId, Math.max(through, ends.get(conversationId) ?? 0))
    return missing.filter(({ hasMore }) => hasMore).map(({ conversationId }) => conversationId)
  }

  async function bringUpAll(ends: ReadonlyMap<string, number>) {
    for (let left = [...ends.keys()]; left.length > 0 && !signal.aborted; ) {
      const batch = left.slice(0, batchSize)
      const more = await paced(() => bringUp(batch, ends))
      left = [...more, ...left.slice(batchSize)]
    }
  }

  const flushing = createSingleFlight(
    () => appended.size() > 0 && !signal.aborted,
    async () => {
      const batch = appended.take(batchSize)
      const { ready = [], unknown = [] } = Object.groupBy(batch, ({ events }) => (events ? 'ready' : 'unknown'))
      try {
        if (ready.length > 0) await paced(() => addAppended(ready))
        await bringUpAll(new Map(unknown.map(({ conversationId, end }) => [conversationId, end])))
      } catch (error) {
        appended.putBack(batch)
        throw error
      }
    },
    { paceMs: 50, isFull: () => appended.size() >= batchSize },
  )

  const follower = createLogFollower(core, {
    name: 'feed',
    startAgeMs: 600_000,
    async handle(found) {
      const through = new Map<string, number>()
      for (const event of found.filter(isInFeed))
        through.set(event.conversationId, Math.max(event.sequence, through.get(event.conversationId) ?? 0))
      const newest = await newestOf(core, [...through.keys()])
      const behind = new Map([...through].filter(([id, sequence]) => (newest.get(id) ?? -1) < sequence))
      if (behind.size > 0) logger.debug({ count: behind.size }, 'conversations lack entries of the feed')
      await bringUpAll(behind)
    },
    signal,
  })

  return {
    /** Adds what this process has appended. Later it happens by itself while somebody reads the feed. */
    flush() {
      isActive = true
      return flushing.run()
    },
    catchUp: follower.catchUp,
    lagMs,
  }
})
