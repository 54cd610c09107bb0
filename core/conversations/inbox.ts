import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogEvent } from '../log/model.ts'
import { field, integer, validate } from '../rules.ts'
import type { Activity, Conversation, ConversationStore } from './conversation-store.ts'
import { pageTokenAfter, readPageToken } from './page-token.ts'

export interface ConversationPage {
  conversations: Conversation[]
  nextPageToken?: string
}

export interface Inbox {
  /** Takes note of a message. Never waits, never fails: the log has it, and `reconcile` finds what was not noted. */
  record(event: LogEvent): void
  /** Conversations with a message, the latest first. Errors: `ValidationFailed`. */
  list(query: {
    workspaceId?: string
    status?: 'open' | 'closed'
    limit?: number
    pageToken?: string
  }): Promise<ConversationPage>
  /** Notes the messages of the last while again: those of a process that died before it could. */
  reconcile(): Promise<void>
  /** Resolves when everything that was recorded here by now is noted, or could not be. */
  noted(): Promise<void>
  drain(): Promise<void>
}

/** How far back `reconcile` looks, in milliseconds. */
const reconcileMs = 10 * 60_000
/** A busy conversation is noted this often, in milliseconds, and not with each message. */
const paceMs = 500
const maxPage = 100
const defaultPage = 50

/** What operators see of conversations. It follows the log, one write for whatever came while the last was under way. */
export function createInbox(dependencies: {
  conversations: Pick<ConversationStore, 'recordActivity' | 'recordClosed' | 'listActive'>
  events: Pick<EventStore, 'activitySince'>
  bus: Bus
  logger: Logger
  now: () => number
}): Inbox {
  const { conversations, events, bus, logger, now } = dependencies
  let noted = new Map<string, Activity>()

  function note({ conversationId, sequence, occurredAt, message }: LogEvent) {
    const earlier = noted.get(conversationId)
    if (earlier && earlier.lastSequence >= sequence) return
    const sessionId = message?.sessionId
    const lastSession = sessionId === undefined ? earlier?.lastSession : { sequence, sessionId }
    noted.set(conversationId, {
      conversationId,
      lastMessageAt: occurredAt,
      lastSequence: sequence,
      ...(lastSession && { lastSession }),
    })
  }

  const writing = createSingleFlight(
    () => noted.size > 0,
    async () => {
      const activities = [...noted.values()]
      noted = new Map()
      try {
        await conversations.recordActivity(activities)
      } catch (error) {
        logger.warn({ reason: (error as Error).name }, 'inbox not updated')
      }
    },
    { paceMs },
  )

  async function reconcile() {
    const closings: { conversationId: string; sequence: number }[] = []
    for await (const event of events.activitySince(new Date(now() - reconcileMs))) {
      if (event.message) note(event)
      else closings.push({ conversationId: event.conversationId, sequence: event.sequence })
    }
    await writing.run()
    for (let start = 0; start < closings.length; start += 1000) {
      await conversations.recordClosed(closings.slice(start, start + 1000))
    }
  }

  // A database that was away may have lost what was recorded last.
  bus.on('gap', () => {
    reconcile().catch((error: Error) => logger.warn({ reason: error.name }, 'inbox reconciliation failed'))
  })

  return {
    record(event) {
      note(event)
      void writing.run()
    },

    async list({ workspaceId, status, limit = defaultPage, pageToken }) {
      validate(field('/limit', limit, integer(1, maxPage)))
      const end = pageToken === undefined ? undefined : readPageToken(pageToken)
      // What this process has just accepted is to be seen.
      await writing.caughtUp()
      const found = await conversations.listActive({
        ...(workspaceId === undefined ? {} : { workspaceId }),
        ...(status && { status }),
        ...(end && { before: { lastMessageAt: end.at, conversationId: end.id } }),
        limit: limit + 1,
      })
      const page = found.slice(0, limit)
      const last = page.at(-1)
      if (found.length <= limit || last?.lastMessageAt === undefined) return { conversations: page }
      return {
        conversations: page,
        nextPageToken: pageTokenAfter({ at: last.lastMessageAt, id: last.conversationId }),
      }
    },

    reconcile,
    noted: writing.caughtUp,
    drain: writing.settled,
  }
}
