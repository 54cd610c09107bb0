import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createBatchLoader } from '../concurrency/batch-loader.ts'
import { createRounds } from '../concurrency/rounds.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import type { EventStore } from './event-store.ts'
import type { LogEvent } from './model.ts'

/** The log of one conversation, followed by this process. */
export interface Feed<M> {
  readonly conversationId: string
  /** Every event up to this sequence was delivered. */
  through: number
  readonly members: Set<M>
}

export interface Feeds<M> {
  /**
   * Joins the feed of a conversation, starting at the end of its log. Errors: those of the store.
   */
  join(conversationId: string, member: M): Promise<Feed<M>>
  leave(feed: Feed<M>, member: M): void
  /** This process wrote an event. */
  appended(event: LogEvent): void
  /** Some process wrote events up to this sequence. */
  advanced(conversationId: string, sequence: number): void
  /** Reads the ends of all followed logs and catches up. This covers lost wake-ups. */
  check(): Promise<void>
  /** Does the same for some of the logs. `checkSteps` calls cover all of them. */
  checkSome(): Promise<void>
}

/** Maximum number of conversations and events in one read of the log. */
const feedsPerRead = 200
const eventsPerRead = 2000

/**
 * Follows the logs of all conversations that have streams on this core. Each event is read from the
 * log and delivered once, in order. A wake-up only says that there may be something to read.
 */
export function createFeeds<M>(dependencies: {
  events: Pick<EventStore, 'ends' | 'readManyAfter'>
  deliver: (feed: Feed<M>, event: LogEvent) => void
  metrics?: CoreMetrics
  logger: Logger
  checkSteps?: number
}): Feeds<M> {
  const { events, deliver, metrics = createCoreMetrics(), logger, checkSteps = 1 } = dependencies
  const readEnds = (conversationIds: string[]) => events.ends(conversationIds, { committed: true })
  /** Batched: many streams join at once after an outage. */
  const endOf = createBatchLoader(readEnds)
  const feeds = new Map<string, Feed<M> & { opened: Promise<void> }>()
  /** Target sequence of each feed that is behind. */
  const behind = new Map<string, number>()
  let reading = false

  const nextPart = createRounds(() => feeds.keys(), checkSteps)

  async function checkEnds(conversationIds: string[]) {
    for (const [conversationId, { sequence }] of await readEnds(conversationIds)) {
      const feed = feeds.get(conversationId)
      if (feed === undefined || sequence <= feed.through) continue
      metrics.missedWakeups.inc()
      fallBehind(feed, sequence)
    }
  }

  function advance(feed: Feed<M>, event: LogEvent) {
    if (event.sequence <= feed.through) return
    feed.through = event.sequence
    deliver(feed, event)
  }

  function fallBehind(feed: Feed<M>, sequence: number) {
    if (sequence <= feed.through) return
    behind.set(feed.conversationId, Math.max(sequence, behind.get(feed.conversationId) ?? 0))
    if (reading) return
    reading = true
    queueMicrotask(() => void catchUp())
  }

  async function catchUp() {
    let failures = 0
    while (behind.size > 0) {
      const targets = [...behind].slice(0, feedsPerRead)
      for (const [conversationId] of targets) behind.delete(conversationId)
      try {
        await read(targets)
        failures = 0
      } catch (error) {
        failures += 1
        logger.warn({ reason: (error as Error).name }, 'read of event logs failed; retrying')
        for (const [id, target] of targets) behind.set(id, Math.max(target, behind.get(id) ?? 0))
        await delay(Math.min(20 * 2 ** failures, 1000))
      }
    }
    reading = false
  }

  async function read(targets: [string, number][]) {
    const wanted = targets.flatMap(([id, target]) => {
      const feed = feeds.get(id)
      return feed && feed.through < target ? [{ feed, target }] : []
    })
    if (wanted.length === 0) return
    const ranges = wanted.map(({ feed }) => ({ conversationId: feed.conversationId, after: feed.through }))
    const found = await events.readManyAfter(ranges, eventsPerRead, { transient: true })
    for (const event of found) {
      const feed = feeds.get(event.conversationId)
      if (feed) advance(feed, event)
    }
    for (const { feed, target } of wanted) {
      // A page that is not full has every event up to the target.
      if (found.length < eventsPerRead) feed.through = Math.max(feed.through, target)
      else if (feed.through < target)
        behind.set(feed.conversationId, Math.max(target, behind.get(feed.conversationId) ?? 0))
    }
  }

  return {
    async join(conversationId, member) {
      let feed = feeds.get(conversationId)
      if (!feed) {
        const created: Feed<M> & { opened: Promise<void> } = {
          conversationId,
          through: 0,
          members: new Set(),
          opened: Promise.resolve(),
        }
        // From now on the feed receives every event. The start includes events that arrive before
        // it is known.
        created.opened = endOf(conversationId).then((end) => {
          created.through = Math.max(created.through, end?.sequence ?? 0)
        })
        feeds.set(conversationId, created)
        feed = created
      }
      feed.members.add(member)
      try {
        await feed.opened
      } catch (error) {
        this.leave(feed, member)
        throw error
      }
      return feed
    },

    leave(feed, member) {
      feed.members.delete(member)
      if (feed.members.size === 0 && feeds.get(feed.conversationId) === feed) feeds.delete(feed.conversationId)
    },

    appended(event) {
      const feed = feeds.get(event.conversationId)
      if (!feed) return
      if (event.sequence === feed.through + 1) advance(feed, event)
      else fallBehind(feed, event.sequence)
    },

    advanced(conversationId, sequence) {
      const feed = feeds.get(conversationId)
      if (feed) fallBehind(feed, sequence)
    },

    async check() {
      const ids = [...feeds.keys()]
      for (let start = 0; start < ids.length; start += 1000) await checkEnds(ids.slice(start, start + 1000))
    },

    checkSome: () => checkEnds(nextPart()),
  }
}
