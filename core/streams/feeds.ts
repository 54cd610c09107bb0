import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs } from '../../platform/concurrency/backoff.ts'
import { createBatchLoader, slicesOf } from '../../platform/concurrency/batcher.ts'
import { createRounds } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { logFailure } from '../errors.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogEvent } from '../log-event.ts'

/** Pause before a failed read is retried. */
const READ_PAUSES = { minMs: 40, maxMs: 1_000 }

/** The log of one conversation that this process follows. */
export interface Feed<M> {
  readonly conversationId: string
  /** Every event up to this sequence was delivered. */
  through: number
  /** The readers to which its events are delivered. */
  readonly members: Set<M>
}

/** Maximum numbers of conversations and of events in one read of the log. */
const feedsPerRead = 200
const eventsPerRead = 2000

/**
 * Follows the logs of all conversations that have streams on this core. Each event is read from the
 * log and delivered once, in order. A wake-up is only a reason to read the log.
 */
export function createFeeds<M>(
  { metrics, logger }: Core,
  events: Pick<EventStore, 'ends' | 'readManyAfter'>,
  deliver: (feed: Feed<M>, event: LogEvent) => void,
  checkSteps = 1,
) {
  const readEnds = (conversationIds: string[]) => events.ends(conversationIds, { committed: true })
  // Loads in batches, because many streams join at once after an outage.
  const endOf = createBatchLoader(readEnds)
  const feeds = new Map<string, Feed<M> & { opened: Promise<void> }>()
  /** Feeds with unread events, and the sequence up to which each must be read. */
  const behind = new Map<string, number>()
  let reading = false

  const nextPart = createRounds(() => feeds.keys(), checkSteps, feedsPerRead)

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

  const note = (id: string, sequence: number) => behind.set(id, Math.max(sequence, behind.get(id) ?? 0))

  function fallBehind(feed: Feed<M>, sequence: number) {
    if (sequence <= feed.through) return
    note(feed.conversationId, sequence)
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
        logFailure(logger, 'read of event logs failed; retrying')(error)
        for (const [id, target] of targets) note(id, target)
        await delay(backoffMs(failures, READ_PAUSES))
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
    // After a failover, a read may return fewer events than were announced. So only events that were
    // read count as delivered. The periodic check finds the others.
    if (found.length < eventsPerRead) return
    for (const { feed, target } of wanted) if (feed.through < target) note(feed.conversationId, target)
  }

  /** Creates a feed that starts at the end of the log. */
  function open(conversationId: string) {
    const feed = { conversationId, through: 0, members: new Set<M>(), opened: Promise.resolve() }
    // The feed is registered before its start is known, so it already receives events.
    // `through` must not go back when the end of the log arrives.
    feed.opened = endOf(conversationId).then((end) => {
      feed.through = Math.max(feed.through, end?.sequence ?? 0)
    })
    feeds.set(conversationId, feed)
    return feed
  }

  return {
    /** Adds a member to the feed of a conversation. Errors: those of the store. */
    async join(conversationId: string, member: M): Promise<Feed<M>> {
      const feed = feeds.get(conversationId) ?? open(conversationId)
      feed.members.add(member)
      try {
        await feed.opened
      } catch (error) {
        this.leave(feed, member)
        throw error
      }
      return feed
    },

    leave(feed: Feed<M>, member: M) {
      feed.members.delete(member)
      if (feed.members.size === 0 && feeds.get(feed.conversationId) === feed) feeds.delete(feed.conversationId)
    },

    membersOf: (conversationId: string): Iterable<M> => feeds.get(conversationId)?.members ?? [],
    /** Must be called after any process has written up to this sequence. `event` is the event at it, if known. */
    advanced(conversationId: string, sequence: number, event?: LogEvent) {
      const feed = feeds.get(conversationId)
      if (!feed) return
      if (event && sequence === feed.through + 1) advance(feed, event)
      else fallBehind(feed, sequence)
    },

    /** Compares all followed logs with their ends in the store and reads missed events. */
    async check() {
      for (const ids of slicesOf([...feeds.keys()], 1000)) await checkEnds(ids)
    },

    /** Like `check`, but for one part of the followed logs. `checkSteps` calls check all of them. */
    async checkSome() {
      const part = nextPart()
      if (part.length > 0) await checkEnds(part)
    },
  }
}
