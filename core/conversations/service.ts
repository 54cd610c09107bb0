import { contractLimits } from '../../contract/limits.ts'
import { measureAtScrape } from '../../platform/observability/metrics.ts'
import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogService } from '../log/service.ts'
import type { LogEvent } from '../log-event.ts'
import type { SearchService } from '../search/service.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorService } from '../visitors/service.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import { createAssignments } from './assignments.ts'
import { createBots } from './bots.ts'
import { createConversationAccess, createConversationSummaries } from './conversation-access.ts'
import { createConversationEvents } from './conversation-events.ts'
import type { ConversationStore } from './conversation-store.ts'
import { createGrowingMessages } from './growing-messages.ts'
import type { GrowthStore } from './growth-store.ts'
import { createGuardedAppends } from './guarded-appends.ts'
import { createInbox } from './inbox.ts'
import { createInboxWatch } from './inbox-watch.ts'
import type { MessageStateStore } from './message-state-store.ts'
import { createMessageStates } from './message-states.ts'
import { createMessages } from './messages.ts'
import { type ContactsOf, conversationFactsMs } from './model.ts'
import { createNotes } from './notes.ts'
import { createRatings } from './ratings.ts'
import { createRedactions } from './redactions.ts'
import { createSiteCapabilities, createSitesOf } from './site-capabilities.ts'
import type { TagStore } from './tag-store.ts'
import { createTags } from './tags.ts'
import { createTyping } from './typing.ts'
import type { TypingStore } from './typing-store.ts'
import { createUnseenMessages } from './unseen-messages.ts'
import { createVisitorPresence } from './visitor-presence.ts'

interface ConversationStores {
  conversations: ConversationStore
  messageStates: MessageStateStore
  tags: TagStore
  growth: GrowthStore
  typing: TypingStore
  sessions: SessionStore
  events: EventStore
  workspaces: Pick<WorkspaceStore, 'listWorkspaces'>
}

/** Interval in milliseconds at which a core looks for what it was not told to end. */
const sweepEveryMs = 60_000
const reconcileEveryMs = 30_000
const missedMessagesEveryMs = 3000
const presenceEveryMs = 200
const measureEveryMs = 10_000
const unseenEveryMs = 30_000
/** Maximum number of workspaces, and of waiting people, that one measurement counts. */
const countedMax = 1_000
/** A visitor whose last message is older does not count as waiting. */
const waitingWithinMs = 12 * 3_600_000

/** Number of messages in a page of history if the request has no limit. */
const historyPageDefault = 50

export function createConversationService(
  { config, bus, idempotency, metrics, logger, now }: Core,
  stores: ConversationStores,
  { log, logHeads, wakeups }: LogService & WakeupService,
  { siteDirectory: { installations } }: WorkspaceService,
  { visitorAccess: access, consents, observations }: VisitorService,
  { searchIndex }: SearchService,
  contactsOf: ContactsOf,
  withdrawFromDeliveries: (redactions: LogEvent[]) => Promise<void>,
) {
  const { conversations, events } = stores
  const conversationAccess = createConversationAccess(
    conversations,
    createLiveCache({
      bus,
      isCurrent: wakeups.isCurrent,
      maxEntries: 100_000,
      maxAgeMs: conversationFactsMs,
      loadMany: async (ids) =>
        new Map(
          (await conversations.find(ids)).map(({ conversationId, workspaceId, epoch }) => [
            conversationId,
            { workspaceId, epoch },
          ]),
        ),
    }),
  )
  const guardedAppends = createGuardedAppends({ log, events })
  const sitesOf = createSitesOf({ sessions: stores.sessions, installations })
  const hasSiteCapability = createSiteCapabilities(sitesOf)
  const readEnds = (ids: string[]) => logHeads.learn(ids, (each) => events.ends(each, { committed: true }))
  const ratings = createRatings({
    access,
    consents,
    log,
    events,
    guardedAppends,
    readEnds,
    store: conversations,
  })
  const assignments = createAssignments({
    store: conversations,
    log,
    conversationAccess,
    ratings,
    hasSiteCapability,
  })
  const inbox = createInbox({ conversations, events, bus, logger, now })
  const inboxWatch = createInboxWatch({ events, conversations, bus, logger, now })
  const typing = createTyping({
    store: stores.typing,
    log,
    observations,
    conversationAccess,
    hasSiteCapability,
    bus,
    logger,
    now,
    settings: { lastsMs: config.TYPING_SECONDS * 1000 },
  })
  const states = createMessageStates({ store: stores.messageStates, log, access, conversationAccess, logger, now })
  const messages = createMessages({
    access,
    consents,
    observations,
    sessions: stores.sessions,
    log,
    events,
    conversationAccess,
    inbox,
    typing,
    states,
    ratings,
    settings: {
      bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
      historyPageMax: contractLimits.historyPageMax,
      historyPageDefault,
    },
  })

  const notes = createNotes({
    store: conversations,
    conversationAccess,
    wakeups,
    searchIndex,
    bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
    now,
  })

  const growthPauseMs = config.ANSWER_PAUSE_SECONDS * 1000
  const growing = createGrowingMessages({
    log,
    events,
    store: stores.growth,
    access,
    idempotency,
    bus,
    now,
    settings: {
      bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
      pauseMs: growthPauseMs,
      idempotencyRetention: config.IDEMPOTENCY_RETENTION_SECONDS,
    },
  })

  const redactions = createRedactions({
    log,
    events,
    store: stores.messageStates,
    searchIndex,
    withdrawFromDeliveries,
    growing,
    conversationAccess,
  })
  const bots = createBots({
    log,
    guardedAppends,
    store: conversations,
    conversationAccess,
    growing,
    assignments,
    notes,
    follow: messages.follow,
    bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
    growthPauseMs,
    now,
  })

  const unseenMessages = createUnseenMessages({
    store: conversations,
    events,
    log,
    readEnds,
    sitesOf,
    contactsOf,
    onMail: config.SMTP_URL === '' ? undefined : () => bus.emit('due', 'mails of unseen answers', 0),
    now,
  })

  const tags = createTags({ store: conversations, tagStore: stores.tags, log, conversationAccess, now })

  const visitorPresence = createVisitorPresence({ now })

  async function reconcile() {
    await redactions.reconcile(await states.reconcile())
    await assignments.reconcile()
    await bots.reconcile()
    await tags.reconcile()
  }

  async function measureWaiting() {
    const workspaces = await stores.workspaces.listWorkspaces('', countedMax)
    const ids = workspaces.map(({ workspaceId }) => workspaceId)
    const waiting = await conversations.waitingSince(ids, new Date(now() - waitingWithinMs), countedMax)
    const [oldest] = waiting
    metrics.peopleWaiting.set(waiting.length)
    metrics.longestWait.set(oldest === undefined ? 0 : (now() - oldest.getTime()) / 1000)
  }

  measureAtScrape(metrics.peopleWaiting, measureEveryMs, measureWaiting)

  return {
    messages,
    typing,
    states,
    assignments,
    bots,
    growing,
    tags,
    notes,
    redactions,
    ratings,
    hasSiteCapability,
    conversationEvents: createConversationEvents({ events, conversationAccess }),
    conversationAccess,
    conversationSummaries: createConversationSummaries({ sessions: stores.sessions, events, contactsOf }),
    inbox,
    inboxWatch,
    visitorPresence,
    unseenMessages,
    jobs: [
      createJob({ name: 'tell about unseen messages', everyMs: unseenEveryMs, run: unseenMessages.tell, logger }),
      createJob({ name: 'end of growing messages', everyMs: sweepEveryMs, run: growing.endOverdue, logger }),
      createJob({ name: 'expire typing', everyMs: sweepEveryMs, run: typing.endOverdue, logger }),
      createJob({
        name: 'reconcile conversations',
        everyMs: reconcileEveryMs,
        run: reconcile,
        logger,
      }),
      createJob({
        name: 'check for missed messages',
        everyMs: missedMessagesEveryMs,
        run: inboxWatch.check,
        logger,
      }),
      createJob({ name: 'check of visitors’ presence', everyMs: presenceEveryMs, run: visitorPresence.check, logger }),
    ],
    /** Resolves when every background write has ended. */
    async drain() {
      await Promise.all([typing.drain(), states.drain()])
    },
  }
}

export type ConversationService = ReturnType<typeof createConversationService>
