import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { type Access, createAccess } from './access.ts'
import type { CoreConfig } from './config.ts'
import { createDirectory, type Directory } from './directory.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { createFeeds, type Feeds } from './feeds.ts'
import { createGrants } from './grants.ts'
import { createIdempotency } from './idempotency.ts'
import { createIdentification, type Identification } from './identification.ts'
import { createIdentityAssertions } from './identity.ts'
import { createInbox, type Inbox } from './inbox.ts'
import { createKeyring, type SecretKey } from './keyring.ts'
import { createLogHeads } from './log-heads.ts'
import { createMessages, type Messages } from './messages.ts'
import { createRenewals, type Renewals } from './renewal.ts'
import { createReplayWindow } from './replay-window.ts'
import { createSecretBox, type SecretBox } from './secret-box.ts'
import { createSessionContents } from './session-content.ts'
import { createSessionWatch } from './session-watch.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { type ConversationStore, createConversationStore } from './store/conversations.ts'
import type { Database } from './store/database.ts'
import { createEventStore } from './store/events.ts'
import { createIdempotencyStore } from './store/idempotency.ts'
import { createNonceStore } from './store/nonces.ts'
import { createSessionStore } from './store/sessions.ts'
import { createSubjectStore } from './store/subjects.ts'
import { createWakeupStore } from './store/wakeups.ts'
import { createWorkspaceStore, type WorkspaceStore } from './store/workspaces.ts'
import { createSubjects } from './subjects.ts'
import { createSubscriptions, type Subscription, type Subscriptions } from './subscriptions.ts'
import { createVisitorAccess, type VisitorAccess } from './visitor-access.ts'
import { createWakeups } from './wakeups.ts'
import { createWorkspaces, type Workspaces } from './workspaces.ts'

/** Everything that the services of one core process share. */
export interface CoreContext {
  config: CoreConfig
  logger: Logger
  database: Database
  access: Access
  visitorAccess: VisitorAccess
  sessions: Sessions
  renewals: Renewals
  identification: Identification
  messages: Messages
  inbox: Inbox
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
  const heads = createLogHeads(events)

  const wakeups = createWakeups({
    store: createWakeupStore(collections),
    processId: randomUUID(),
    logger,
    monotonic: () => performance.now(),
    listener: {
      onWakeup({ heads: ends, changed }) {
        for (const [conversationId, sequence] of ends) {
          heads.advance(conversationId, sequence)
          feeds.advanced(conversationId, sequence)
        }
        directory.changed(changed)
        sessionWatch.changed(changed)
      },
      onGap() {
        directory.forgetAll()
        void checkMissed()
      },
    },
  })
  const directory = createDirectory({ sessionStore, workspaceStore, isCurrent: wakeups.isCurrent })
  const visitorAccess = createVisitorAccess({ directory, grants, now })
  const log: EventLog = createEventLog({
    store: events,
    heads,
    now,
    onAppended(event) {
      feeds.appended(event)
      wakeups.logAdvanced(event.conversationId, event.sequence)
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
  const messages = createMessages({
    access: visitorAccess,
    sessions: sessionStore,
    log,
    events,
    conversations,
    inbox,
    settings: {
      bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
      pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
      historyPageMax: config.HISTORY_PAGE_MAX,
      historyPageDefault: config.HISTORY_PAGE_DEFAULT,
    },
  })
  const contents = createSessionContents({ grants, conversations, events, replayWindow })
  const sessionParts = {
    store: sessionStore,
    conversations,
    contents,
    access: visitorAccess,
    keyring,
    idempotency: createIdempotency(createIdempotencyStore(collections), now),
    wakeups,
    now,
    settings: {
      grantLifetime: config.GRANT_LIFETIME_SECONDS,
      sessionLifetime: config.SESSION_LIFETIME_SECONDS,
      creationRepeat: config.SESSION_CREATION_REPEAT_SECONDS,
      idempotencyRetention: config.IDEMPOTENCY_RETENTION_SECONDS,
      pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
    },
  }
  const sessions = createSessions({ ...sessionParts, workspaces })
  const renewals = createRenewals({ ...sessionParts, directory, grants })
  const identification = createIdentification({
    ...sessionParts,
    nonces: createNonceStore(collections),
    subjects: createSubjects({
      store: createSubjectStore(collections),
      sessions: sessionStore,
      conversations,
      events,
      access: visitorAccess,
      keyring,
      wakeups,
    }),
    assertions: createIdentityAssertions({
      secretBox,
      now,
      settings: {
        assertionLifetime: config.IDENTITY_ASSERTION_LIFETIME_SECONDS,
        clockSkew: config.IDENTITY_CLOCK_SKEW_SECONDS,
        contextMaxKeys: config.IDENTITY_CONTEXT_MAX_KEYS,
        contextMaxBytes: config.IDENTITY_CONTEXT_MAX_BYTES,
      },
    }),
    log,
  })

  async function checkMissed() {
    const passing = (error: Error) => logger.warn({ reason: error.name }, 'missed events not looked for')
    await Promise.all([feeds.check().catch(passing), sessionWatch.checkAll()])
  }

  const timers: NodeJS.Timeout[] = []

  return {
    config,
    logger,
    database,
    access: createAccess(keyring, now),
    visitorAccess,
    sessions,
    renewals,
    identification,
    messages,
    inbox,
    workspaces,
    workspaceStore,
    conversations,
    subscriptions,
    secretBox,
    directory,
    now,

    start() {
      wakeups.start()
      void inbox.reconcile().catch((error: Error) => logger.warn({ reason: error.name }, 'inbox not reconciled'))
      timers.push(setInterval(() => void checkMissed(), checkEveryMs))
      timers.push(setInterval(() => void sessionWatch.checkExpired(), expiryEveryMs))
    },

    async stop() {
      for (const timer of timers) clearInterval(timer)
      await log.drain()
      await inbox.drain()
      await wakeups.stop()
      await database.close()
    },
  }
}
