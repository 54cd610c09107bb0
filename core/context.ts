import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { type Access, createAccess } from './access.ts'
import { createCommandCleanup } from './command-cleanup.ts'
import { type CommandDecisions, createCommandDecisions } from './command-decisions.ts'
import { type Commands, createCommands } from './commands.ts'
import type { CoreConfig } from './config.ts'
import { createConversationAccess } from './conversation-access.ts'
import { type Conversations, createConversations } from './conversations.ts'
import { createDirectory, type Directory } from './directory.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { createFeeds, type Feeds } from './feeds.ts'
import { createGrants } from './grants.ts'
import { createIdempotency } from './idempotency.ts'
import { createInbox, type Inbox } from './inbox.ts'
import { createInboxWatch, type InboxWatch } from './inbox-watch.ts'
import { createKeyring, type SecretKey } from './keyring.ts'
import { createLeads, type Leads } from './leads.ts'
import { createLogHeads } from './log-heads.ts'
import { createMessageStates, type MessageStates } from './message-states.ts'
import { createMessages, type Messages } from './messages.ts'
import { createRecurring } from './recurring.ts'
import { createReplayWindow } from './replay-window.ts'
import { createScreenshots, type Screenshots } from './screenshots.ts'
import { createSecretBox, type SecretBox } from './secret-box.ts'
import { createSessionParts, type SessionParts } from './session-parts.ts'
import { createSessionWatch } from './session-watch.ts'
import { createCommandStore } from './store/commands.ts'
import { type ConversationStore, createConversationStore } from './store/conversations.ts'
import type { Database } from './store/database.ts'
import { createEventStore } from './store/events.ts'
import { createIdempotencyStore } from './store/idempotency.ts'
import { createLeadStore } from './store/leads.ts'
import { createMessageStateStore } from './store/message-states.ts'
import { createScreenshotStore } from './store/screenshots.ts'
import { createSessionStore } from './store/sessions.ts'
import { createTransientEventStore } from './store/transient-events.ts'
import { createTypingStore } from './store/typing.ts'
import { createWakeupStore } from './store/wakeups.ts'
import { createWorkspaceStore, type WorkspaceStore } from './store/workspaces.ts'
import { createSubscriptions, type Subscription, type Subscriptions } from './subscriptions.ts'
import { createTransientSweep, type TransientSweep } from './transient-sweep.ts'
import { createTyping, type Typing } from './typing.ts'
import { createVisitorAccess, type VisitorAccess } from './visitor-access.ts'
import { createWakeups } from './wakeups.ts'
import { createWorkspaces, type Workspaces } from './workspaces.ts'

/** Everything that the services of one core process share. */
export interface CoreContext extends SessionParts {
  config: CoreConfig
  logger: Logger
  database: Database
  access: Access
  visitorAccess: VisitorAccess
  messages: Messages
  commands: Commands
  commandDecisions: CommandDecisions
  screenshots: Screenshots
  inbox: Inbox
  inboxWatch: InboxWatch
  typing: Typing
  states: MessageStates
  /** What operators do with conversations. */
  conversationDesk: Conversations
  leads: Leads
  transientSweep: TransientSweep
  workspaces: Workspaces
  workspaceStore: WorkspaceStore
  conversations: ConversationStore
  subscriptions: Subscriptions
  secretBox: SecretBox
  directory: Directory
  now: () => number
  /** Starts following the other processes. */
  start(): void
  /** Finishes what is under way, then lets go of the database. */
  stop(): Promise<void>
}

export interface CoreDependencies {
  config: CoreConfig
  secretKeys: [SecretKey, ...SecretKey[]]
  database: Database
  logger: Logger
  now?: () => number
}

/** How often a core looks whether it missed a wake-up, in milliseconds: it then costs this much time, and no event. */
const checkEveryMs = 3000
const expiryEveryMs = 1000
const commandCleanupEveryMs = 60_000
/** How often typing that nobody renewed is ended, and what dead processes left is finished, in milliseconds. */
const typingEveryMs = 500
const healEveryMs = 10_000

export function createCoreContext({
  config,
  secretKeys,
  database,
  logger,
  now = Date.now,
}: CoreDependencies): CoreContext {
  const { collections } = database
  const conversations = createConversationStore(collections)
  const events = createEventStore(collections)
  const sessionStore = createSessionStore(collections)
  const workspaceStore = createWorkspaceStore(collections)
  const keyring = createKeyring(secretKeys)
  const grants = createGrants(keyring)
  const secretBox = createSecretBox(keyring)
  const transientMs = config.TRANSIENT_EVENT_SECONDS * 1000
  const heads = createLogHeads(events, { now, rememberMs: transientMs / 6 })

  const wakeups = createWakeups({
    store: createWakeupStore(collections),
    processId: randomUUID(),
    logger,
    monotonic: () => performance.now(),
    listener: {
      onWakeup({ heads: ends, changed }) {
        for (const [conversationId, sequence, closed] of ends) {
          if (closed !== undefined) heads.advance(conversationId, { sequence, closed })
          feeds.advanced(conversationId, sequence)
          inboxWatch.advanced(conversationId, sequence)
        }
        directory.changed(changed)
        sessionWatch.changed(changed)
      },
      onGap() {
        directory.forgetAll()
        inboxWatch.missed()
        void checkMissed()
        // A database that was away may have lost what was noted of the last messages.
        void inbox.reconcile().catch((error: Error) => logger.warn({ reason: error.name }, 'inbox not reconciled'))
      },
    },
  })
  const directory = createDirectory({ sessionStore, workspaceStore, isCurrent: wakeups.isCurrent })
  const visitorAccess = createVisitorAccess({ directory, grants, now })
  const log: EventLog = createEventLog({
    store: events,
    heads,
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
    logger,
    now,
  })
  const window = { maxEvents: config.REPLAY_WINDOW_EVENTS, maxAge: config.REPLAY_WINDOW_SECONDS }
  const replayWindow = createReplayWindow(events, window, now)
  const subscriptions = createSubscriptions({
    feeds: () => feeds,
    replayWindow,
    now,
    onOpened: ({ session }) => sessionWatch.add(session),
    onEnded: ({ session }) => sessionWatch.remove(session.sessionId),
  })
  const feeds: Feeds<Subscription> = createFeeds({ events, deliver: subscriptions.deliver, logger })

  const workspaces = createWorkspaces({ store: workspaceStore, directory, secretBox, wakeups, now })
  const inbox = createInbox({ conversations, events, logger, now })
  const inboxWatch = createInboxWatch({ events, conversations, logger, now })
  const conversationAccess = createConversationAccess(conversations)
  const conversationDesk = createConversations({ store: conversations, log, conversationAccess })
  const typing = createTyping({
    store: createTypingStore(collections),
    log,
    access: visitorAccess,
    conversationAccess,
    logger,
    now,
    settings: { lastsMs: config.TYPING_SECONDS * 1000 },
  })
  const states = createMessageStates({
    store: createMessageStateStore(collections),
    log,
    conversationAccess,
    logger,
    now,
  })
  const leads = createLeads({
    store: createLeadStore(collections),
    workspaceStore,
    access: visitorAccess,
    conversationAccess,
    now,
  })
  const transientSweep = createTransientSweep({ store: createTransientEventStore(collections), now })
  const messages = createMessages({
    access: visitorAccess,
    sessions: sessionStore,
    log,
    events,
    conversationAccess,
    inbox,
    typing,
    states,
    settings: {
      bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
      pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
      historyPageMax: config.HISTORY_PAGE_MAX,
      historyPageDefault: config.HISTORY_PAGE_DEFAULT,
    },
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

  const commandStore = createCommandStore(collections)
  const screenshotStore = createScreenshotStore(database.screenshots)
  const commands = createCommands({
    store: commandStore,
    sessions: sessionParts.sessions,
    access: visitorAccess,
    installations: directory.installations,
    log,
    now,
    settings: { lifetime: config.COMMAND_LIFETIME_SECONDS, retention: config.COMMAND_RETENTION_DAYS },
  })
  const commandDecisions = createCommandDecisions({
    store: commandStore,
    access: visitorAccess,
    idempotency,
    now,
    settings: {
      lifetime: config.COMMAND_LIFETIME_SECONDS,
      screenshotMaxBytes: config.SCREENSHOT_MAX_BYTES,
      idempotencyRetention: config.IDEMPOTENCY_RETENTION_SECONDS,
    },
  })
  const screenshots = createScreenshots({
    store: commandStore,
    files: screenshotStore,
    access: visitorAccess,
    idempotency,
    logger,
    now,
    settings: {
      maxBytes: config.SCREENSHOT_MAX_BYTES,
      maxUploads: config.SCREENSHOT_UPLOADS_MAX,
      idempotencyRetention: config.IDEMPOTENCY_RETENTION_SECONDS,
    },
  })
  const commandCleanup = createCommandCleanup({ store: commandStore, files: screenshotStore, now })

  async function checkMissed() {
    const passing = (error: Error) => logger.warn({ reason: error.name }, 'missed events not looked for')
    await Promise.all([feeds.check().catch(passing), inboxWatch.check().catch(passing), sessionWatch.checkAll()])
  }

  const timers: NodeJS.Timeout[] = []
  const chores = [
    createRecurring({ name: 'end of typing', everyMs: typingEveryMs, run: typing.endOverdue, logger }),
    createRecurring({
      name: 'healing',
      everyMs: healEveryMs,
      run: async () => {
        await states.heal()
        await conversationDesk.heal()
      },
      logger,
    }),
    createRecurring({
      name: 'sweep of transient events',
      everyMs: config.TRANSIENT_SWEEP_SECONDS * 1000,
      run: async () => {
        for (let more = true; more; ) ({ more } = await transientSweep.sweep())
      },
      logger,
    }),
  ]

  return {
    config,
    logger,
    database,
    access: createAccess(keyring, now),
    visitorAccess,
    ...sessionParts,
    messages,
    commands,
    commandDecisions,
    screenshots,
    inbox,
    inboxWatch,
    typing,
    states,
    conversationDesk,
    leads,
    transientSweep,
    workspaces,
    workspaceStore,
    conversations,
    subscriptions,
    secretBox,
    directory,
    now,

    start() {
      wakeups.start()
      for (const chore of chores) chore.start()
      timers.push(setInterval(() => void checkMissed(), checkEveryMs))
      timers.push(setInterval(() => void sessionWatch.checkExpired(), expiryEveryMs))
      timers.push(
        setInterval(() => {
          const passing = (error: Error) => logger.warn({ reason: error.name }, 'old commands not cleaned up')
          void commandCleanup.run().catch(passing)
        }, commandCleanupEveryMs),
      )
    },

    async stop() {
      for (const timer of timers) clearInterval(timer)
      await Promise.all(chores.map((chore) => chore.stop()))
      await Promise.all([typing.drain(), states.drain()])
      await log.drain()
      await inbox.drain()
      await wakeups.stop()
      await database.close()
    },
  }
}
