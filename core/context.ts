import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { type Access, createAccess } from './access.ts'
import { type CommandParts, createCommandParts } from './commands/command-parts.ts'
import { createRecurring } from './concurrency/recurring.ts'
import { allowedCidrs, type CoreConfig } from './config.ts'
import { createConversationAccess } from './conversations/conversation-access.ts'
import { type ConversationParts, createConversationParts } from './conversations/conversation-parts.ts'
import { createInbox, type Inbox } from './conversations/inbox.ts'
import { createInboxWatch, type InboxWatch } from './conversations/inbox-watch.ts'
import { createIdempotency } from './idempotency.ts'
import { createKeyring, type SecretKey } from './keys/keyring.ts'
import { createSecretBox, type SecretBox } from './keys/secret-box.ts'
import { createDeliveryParts, type DeliveryParts, deliveryWorkHint } from './leads/delivery-parts.ts'
import { createDestinationJudge } from './leads/destination-judge.ts'
import type { JudgeDestination } from './leads/lead-subscriptions.ts'
import { createEventLog, type EventLog } from './log/event-log.ts'
import { createFeeds, type Feeds } from './log/feeds.ts'
import { createLogHeads } from './log/log-heads.ts'
import { createReplayWindow } from './log/replay-window.ts'
import { createSubscriptions, type Subscription, type Subscriptions } from './log/subscriptions.ts'
import { createWakeups } from './log/wakeups.ts'
import { type CoreMetrics, createCoreMetrics } from './metrics.ts'
import { createPrivacyParts, type PrivacyParts } from './privacy/privacy-parts.ts'
import { createGrants } from './sessions/grants.ts'
import { createSessionParts, type SessionParts } from './sessions/session-parts.ts'
import { createSessionWatch } from './sessions/session-watch.ts'
import { createVisitorAccess, type VisitorAccess } from './sessions/visitor-access.ts'
import { type ConversationStore, createConversationStore } from './store/conversations.ts'
import type { Database } from './store/database.ts'
import { createEventStore } from './store/events.ts'
import { createIdempotencyStore } from './store/idempotency.ts'
import { createSessionStore } from './store/sessions.ts'
import { createWakeupStore } from './store/wakeups.ts'
import { createWorkspaceStore, type WorkspaceStore } from './store/workspaces.ts'
import { createDirectory, type Directory } from './workspaces/directory.ts'
import { createWorkspaceSessions } from './workspaces/workspace-sessions.ts'
import { createWorkspaces, type Workspaces } from './workspaces/workspaces.ts'

/** Everything that the services of one core process share. */
export interface CoreContext
  extends SessionParts,
    Omit<ConversationParts, 'chores' | 'drain'>,
    Omit<CommandParts, 'chores'>,
    Omit<DeliveryParts, 'chores'>,
    Omit<PrivacyParts, 'chores'> {
  config: CoreConfig
  logger: Logger
  database: Database
  access: Access
  visitorAccess: VisitorAccess
  inbox: Inbox
  inboxWatch: InboxWatch
  workspaces: Workspaces
  workspaceStore: WorkspaceStore
  conversations: ConversationStore
  subscriptions: Subscriptions
  secretBox: SecretBox
  directory: Directory
  metrics: CoreMetrics
  now: () => number
  /** Starts following the other processes. */
  start(): void
  /** Finishes what is under way, then lets go of the database. */
  stop(): Promise<void>
}

export interface CoreDependencies {
  config: CoreConfig
  secretKeys: [SecretKey, ...SecretKey[]]
  /** HS256 keys of workspace sessions; none are accepted without any, unless the settings name a key set. */
  workspaceSessionSecrets?: Uint8Array[]
  database: Database
  logger: Logger
  metrics?: CoreMetrics
  now?: () => number
  /** Chance, 0 to less than 1. */
  random?: () => number
  /** Left out: as the settings say, by the name service. */
  judgeDestination?: JudgeDestination
}

/**
 * How often a core looks whether it missed wake-ups, in milliseconds, and in how many looks it goes round the logs that it
 * follows, and round the sessions: a missed one costs that time, and no event.
 */
const checkEveryMs = 300
const logCheckSteps = 10
const sessionCheckSteps = 50
const expiryEveryMs = 1000

export function createCoreContext({
  config,
  secretKeys,
  workspaceSessionSecrets = [],
  database,
  logger,
  metrics = createCoreMetrics(),
  now = Date.now,
  random = Math.random,
  judgeDestination = createDestinationJudge({ allowedCidrs: allowedCidrs(config) }),
}: CoreDependencies): CoreContext {
  const { collections } = database
  const conversations = createConversationStore(collections)
  const events = createEventStore(collections)
  const sessionStore = createSessionStore(collections)
  const workspaceStore = createWorkspaceStore(collections)
  const keyring = createKeyring(secretKeys)
  const workspaceSessions = createWorkspaceSessions(
    {
      secrets: workspaceSessionSecrets,
      jwksTimeoutMs: config.WORKSPACE_SESSION_JWKS_TIMEOUT_MS,
      jwksFreshMs: config.WORKSPACE_SESSION_JWKS_FRESH_SECONDS * 1000,
      ...(config.WORKSPACE_SESSION_JWKS_URL && { jwksUrl: config.WORKSPACE_SESSION_JWKS_URL }),
      ...(config.WORKSPACE_SESSION_ISSUER && { issuer: config.WORKSPACE_SESSION_ISSUER }),
    },
    now,
  )
  const grants = createGrants(keyring)
  const secretBox = createSecretBox(keyring)
  const transientMs = config.TRANSIENT_EVENT_SECONDS * 1000
  const heads = createLogHeads(events, { now, rememberMs: transientMs / 6 })

  const wakeups = createWakeups({
    store: createWakeupStore({ ...collections, nudge: database.nudge }),
    processId: randomUUID(),
    logger,
    metrics,
    now,
    monotonic: () => performance.now(),
    listener: {
      onWakeup({ heads: ends, changed }) {
        for (const [conversationId, sequence, closed] of ends) {
          if (closed !== undefined) heads.advance(conversationId, { sequence, closed })
          feeds.advanced(conversationId, sequence)
          inboxWatch.advanced(conversationId, sequence)
        }
        directory.changed(changed)
        deliveryParts.liveSubscriptions.forget(changed)
        sessionWatch.changed(changed)
        if (changed.includes(deliveryWorkHint)) deliveryParts.deliveryWork.announce()
      },
      onGap() {
        directory.forgetAll()
        deliveryParts.liveSubscriptions.forgetAll()
        inboxWatch.missed()
        deliveryParts.deliveryWork.announce()
        void checkMissed()
        // A database that was away may have lost what was noted of the last messages.
        void inbox.reconcile().catch((error: Error) => logger.warn({ reason: error.name }, 'inbox not reconciled'))
      },
    },
  })
  const directory = createDirectory({
    sessionStore,
    workspaceStore,
    conversationStore: conversations,
    isCurrent: wakeups.isCurrent,
  })
  const visitorAccess = createVisitorAccess({ directory, grants, now })
  const log: EventLog = createEventLog({
    store: events,
    heads,
    metrics,
    now,
    transientMs,
    onAppended(event) {
      const { conversationId, sequence, closed = false } = event
      feeds.appended(event)
      wakeups.logAdvanced(conversationId, { sequence, closed })
      inboxWatch.advanced(conversationId, sequence)
    },
  })
  const sessionWatch = createSessionWatch({
    access: visitorAccess,
    log,
    onSeen: (sessionId, conversationId) => subscriptions.sessionIsIn(sessionId, conversationId),
    onGone: (sessionId) => subscriptions.sessionIsGone(sessionId),
    logger,
    now,
    checkSteps: sessionCheckSteps,
  })
  const window = { maxEvents: config.REPLAY_WINDOW_EVENTS, maxAge: config.REPLAY_WINDOW_SECONDS }
  const replayWindow = createReplayWindow(events, window, now)
  const subscriptions = createSubscriptions({
    feeds: () => feeds,
    replayWindow,
    metrics,
    now,
    onOpened: ({ session }) => sessionWatch.add(session),
    onEnded: ({ session }) => sessionWatch.remove(session.sessionId),
  })
  const feeds: Feeds<Subscription> = createFeeds({
    // Whoever follows a log says where it ends, so that an answer to them needs no question of its own.
    events: { ...events, ends: (ids, options) => heads.learn(ids, (each) => events.ends(each, options)) },
    deliver: subscriptions.deliver,
    metrics,
    logger,
    checkSteps: logCheckSteps,
  })

  const workspaces = createWorkspaces({ store: workspaceStore, directory, secretBox, wakeups, now })
  const inbox = createInbox({ conversations, events, logger, now })
  const inboxWatch = createInboxWatch({ events, conversations, logger, now })
  const conversationAccess = createConversationAccess(conversations, directory)
  const conversationParts = createConversationParts({
    config,
    collections,
    sessionStore,
    conversations,
    conversationAccess,
    events,
    log,
    access: visitorAccess,
    inbox,
    logger,
    now,
  })
  const idempotency = createIdempotency(createIdempotencyStore(collections), now)
  const sessionParts = createSessionParts({
    collections,
    config,
    sessionStore,
    conversations,
    events,
    replayWindow,
    log,
    workspaces,
    directory,
    access: visitorAccess,
    grants,
    keyring,
    secretBox,
    idempotency,
    wakeups,
    now,
  })

  const commandParts = createCommandParts({
    config,
    collections,
    files: database.screenshots,
    sessions: sessionParts.sessions,
    access: visitorAccess,
    installations: directory.installations,
    log,
    idempotency,
    logger,
    now,
  })

  const privacyParts = createPrivacyParts({
    database,
    sessionStore,
    sessions: sessionParts.sessions,
    subjects: sessionParts.subjects,
    workspaceStore,
    wakeups,
    logger,
    now,
  })

  const deliveryParts = createDeliveryParts({
    config,
    collections,
    workspaceStore,
    conversationAccess,
    access: visitorAccess,
    secretBox,
    wakeups,
    judgeDestination,
    metrics,
    logger,
    now,
    random,
  })

  async function checkMissed() {
    const passing = (error: Error) => logger.warn({ reason: error.name }, 'missed events not looked for')
    await Promise.all([feeds.check().catch(passing), inboxWatch.check().catch(passing), sessionWatch.checkAll()])
  }

  const checkSome = () => Promise.all([feeds.checkSome(), sessionWatch.checkSome()])

  const chores = [
    ...conversationParts.chores,
    ...commandParts.chores,
    ...deliveryParts.chores,
    ...privacyParts.chores,
    createRecurring({ name: 'look for missed events', everyMs: checkEveryMs, run: checkSome, logger }),
    createRecurring({
      name: 'look for missed messages',
      everyMs: checkEveryMs * logCheckSteps,
      run: () => inboxWatch.check(),
      logger,
    }),
    createRecurring({ name: 'end of sessions', everyMs: expiryEveryMs, run: sessionWatch.checkExpired, logger }),
  ]

  return {
    config,
    logger,
    database,
    access: createAccess(keyring, now, workspaceSessions),
    visitorAccess,
    ...sessionParts,
    ...conversationParts,
    ...commandParts,
    ...deliveryParts,
    ...privacyParts,
    inbox,
    inboxWatch,
    workspaces,
    workspaceStore,
    conversations,
    subscriptions,
    secretBox,
    directory,
    metrics,
    now,

    start() {
      wakeups.start()
      for (const chore of chores) chore.start()
    },

    async stop() {
      deliveryParts.deliveryWork.close()
      await Promise.all(chores.map((chore) => chore.stop()))
      await conversationParts.drain()
      await log.drain()
      await inbox.drain()
      await wakeups.stop()
      await database.close()
    },
  }
}
