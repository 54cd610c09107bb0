import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { EventStore } from '../log/event-store.ts'
import { isEntry, type LogEvent } from '../log-event.ts'
import { cutPage, pageTokenOf, readPageToken } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import type { ConversationStore, ListQuery, StatusChange } from './conversation-store.ts'
import {
  type Activity,
  type Assignee,
  botAuthorOf,
  type Conversation,
  isRating,
  type QueueCounts,
  queuePlaceOf,
  ratingOf,
  tagIssue,
} from './model.ts'
import { firstLookMs } from './unseen-messages.ts'

interface ConversationPage {
  conversations: Conversation[]
  nextPageToken?: string
}

export interface Inbox {
  /**
   * Queues a message or a form for the inbox. Never waits or fails, because `reconcile` repairs missed
   * messages.
   */
  record(event: LogEvent): void
  /**
   * Returns conversations with a message, latest first; unanswered ones by waiting time, oldest
   * first. Errors: `ValidationFailed`.
   */
  list(query: ListQuery & { limit?: number; pageToken?: string }): Promise<ConversationPage>
  /** Counts the open conversations of a workspace in the queues of an agent. */
  count(workspaceId: string, assignee: Assignee): Promise<QueueCounts>
  /** Returns the token of the page after a conversation of the list. */
  tokenAfter(conversation: Conversation, query: ListQuery): string
  /** Records recent messages again, including messages of a crashed process. */
  reconcile(): Promise<void>
  /** Resolves when the write of each message queued before this call has succeeded or failed. */
  noted(): Promise<void>
  drain(): Promise<void>
}

/** Age in milliseconds of the oldest messages that `reconcile` reads. */
const reconcileMs = 10 * 60_000
/**
 * Minimum interval in milliseconds between writes. Without it, each message of a busy conversation
 * would cause a write.
 */
const paceMs = 500
const maxPage = 100
const defaultPage = 50

const placeOf = ({ workspaceId = '', unanswered = false }: ListQuery) => `conversations ${unanswered} ${workspaceId}`

/** Returns the place of a conversation in the list. */
const endIn =
  ({ unanswered }: ListQuery) =>
  ({ lastMessageAt, queue, conversationId }: Conversation) => ({
    at: (unanswered ? queue?.waitingSince : lastMessageAt)!,
    id: conversationId,
  })

/**
 * Maintains the operators' list of conversations from the log. Messages that arrive during a write
 * are written together by the next write.
 */
export function createInbox(dependencies: {
  conversations: Pick<ConversationStore, 'recordActivity' | 'recordStatus' | 'listActive' | 'count'>
  events: Pick<EventStore, 'activitySince'>
  bus: Bus
  logger: Logger
  now: () => number
}): Inbox {
  const { conversations, events, bus, logger, now } = dependencies
  let queued = new Map<string, Activity>()

  function note(event: LogEvent) {
    const { conversationId, sequence, occurredAt, message } = event
    const earlier = queued.get(conversationId)
    if (earlier && earlier.lastSequence >= sequence) return
    const sessionId = message?.sessionId ?? event.sessionId
    const lastSession = sessionId === undefined ? earlier?.lastSession : { sequence, sessionId }
    const unseenAt =
      earlier?.unseenAt ??
      (event.type === 'message.received' ? new Date(occurredAt.getTime() + firstLookMs) : undefined)
    const botAuthor = botAuthorOf(event) ?? earlier?.botAuthor
    queued.set(conversationId, {
      conversationId,
      lastMessageAt: occurredAt,
      lastSequence: sequence,
      ...(lastSession && { lastSession }),
      ...(botAuthor && { botAuthor }),
      queue: queuePlaceOf(event),
      ...(unseenAt && { unseenAt }),
    })
  }

  const writing = createSingleFlight(
    () => queued.size > 0,
    async () => {
      const activities = [...queued.values()]
      queued = new Map()
      try {
        await conversations.recordActivity(activities)
      } catch (error) {
        logger.warn({ reason: (error as Error).name }, 'inbox update failed; reconciliation will repeat it')
      }
    },
    { paceMs },
  )

  async function reconcile() {
    const changes: StatusChange[] = []
    for await (const event of events.activitySince(new Date(now() - reconcileMs))) {
      const { conversationId } = event
      if (isEntry(event)) note(event)
      else if (isRating(event)) changes.push({ conversationId, rating: ratingOf(event) })
      else changes.push({ conversationId, queue: queuePlaceOf(event) })
    }
    await writing.run()
    for (let start = 0; start < changes.length; start += 1000) {
      await conversations.recordStatus(changes.slice(start, start + 1000))
    }
  }

  // A gap can mean that the database was unavailable. Writes of the inbox may have failed then.
  bus.on('gap', () => {
    reconcile().catch((error: Error) =>
      logger.warn({ reason: error.name }, 'inbox reconciliation failed; will run again'),
    )
  })

  return {
    record(event) {
      note(event)
      void writing.run()
    },

    async list({ limit = defaultPage, pageToken, ...query }) {
      validate(field('/limit', limit, integer(1, maxPage)), tagIssue(query.tag))
      const after = readPageToken(placeOf(query), pageToken)
      // The list must include each message that this process accepted before this call.
      await writing.caughtUp()
      const found = await conversations.listActive({ ...query, after, limit: limit + 1 })
      const { page, nextPageToken } = cutPage(found, limit, placeOf(query), endIn(query))
      return { conversations: page, nextPageToken }
    },

    async count(workspaceId, assignee) {
      await writing.caughtUp()
      return conversations.count(workspaceId, assignee)
    },

    tokenAfter: (conversation, query) => pageTokenOf(placeOf(query), endIn(query)(conversation)),

    reconcile,
    noted: writing.caughtUp,
    drain: writing.settled,
  }
}
