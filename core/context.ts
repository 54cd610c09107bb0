import { createSlots } from '../platform/concurrency/slots.ts'
import { splitList } from '../platform/settings/settings.ts'
import { readAvailability } from './availability/availability.ts'
import { availabilityJobs, availabilitySenderOf } from './availability/availability-sender.ts'
import { operatorPresenceOf } from './availability/operator-presence.ts'
import { bound } from './bound.ts'
import { createBus } from './bus.ts'
import { commandJobs } from './commands/screenshots.ts'
import { createJob } from './concurrency/job.ts'
import { createSharedBytes } from './concurrency/shared-bytes.ts'
import { createTurns } from './concurrency/turns.ts'
import { findConversations, insertConversation, setLastSession } from './conversations/conversation-store.ts'
import { inboxOf } from './conversations/inbox.ts'
import { conversationJobs, drainConversations } from './conversations/jobs.ts'
import { deliveryWithdrawalOf } from './conversations/redactions.ts'
import { Core } from './core.ts'
import type { Database } from './database/database.ts'
import { createDatabaseCheck } from './database/database-check.ts'
import { createStores } from './database/stores.ts'
import { createDestinationCheck, type IsAllowedDestination } from './deliveries/destination-check.ts'
import { closeDeliveries, deliveryJobs, deliveryLags, openDeliveries } from './deliveries/jobs.ts'
import { withdrawFromDeliveries } from './deliveries/sources.ts'
import { closeFeed, feedJobs, feedLags } from './feed/jobs.ts'
import { createIdempotency } from './idempotency/idempotency.ts'
import { createIdempotencyStore } from './idempotency/idempotency-store.ts'
import { createKeyring, createPlannedIds, type SecretKey } from './keys/keyring.ts'
import { createSecretBox } from './keys/secret-box.ts'
import { logOf } from './log/event-log.ts'
import { logJobs } from './log/transient-sweep.ts'
import { mailerOf } from './mail/mailer.ts'
import { createCoreMetrics, observeJobs, observeLags } from './metrics.ts'
import { answerMailJobs } from './notices/answer-mails.ts'
import { operatorNoticeJobs } from './notices/operator-notices.ts'
import { createOperatorService } from './operators/service.ts'
import { createPrivacyService } from './privacy/service.ts'
import { searchIndexOf, searchJobs } from './search/search-index.ts'
import { sessionCheckOf, sessionJobs } from './sessions/session-check.ts'
import { conversationRecordsOf } from './sessions/session-store.ts'
import { directoryOf } from './sessions/visitor-access.ts'
import { replayWindowOf } from './streams/replay-window.ts'
import { streamJobs, streamSubscriptionsOf } from './streams/stream-subscriptions.ts'
import { createVisitorService } from './visitors/service.ts'
import type { Nudge } from './wakeups/wakeup-store.ts'
import { wakeupJobs, wakeupsOf } from './wakeups/wakeups.ts'
import { createAccess } from './workspaces/access.ts'
import { createWorkspaceService } from './workspaces/service.ts'
import { siteDirectoryOf } from './workspaces/workspaces.ts'

interface CoreDependencies extends Pick<Core, 'config' | 'logger'>, Partial<Pick<Core, 'metrics' | 'now' | 'random'>> {
  secretKeys: [SecretKey, ...SecretKey[]]
  /**
   * HS256 keys that verify the tokens of workspace sessions. If the list is empty, only the key set
   * in the settings can verify them.
   */
  workspaceSessionSecrets?: Uint8Array[]
  database: Database
  /** Tells other cores on the same machine to read new wake-ups. */
  nudge?: Nudge
  /**
   * Checks whether leads may be sent to a destination. The default checks the URL and its DNS
   * addresses against the settings.
   */
  isAllowedDestination?: IsAllowedDestination
  /** Called if the data was restored under this core. By default, ends the process. */
  onRestored?: () => void
}

const inboxesPerTurn = 8
/** Maximum number of paged reads of operators and services that run at once. */
const readsMax = 4
const unreadFramesMaxBytes = 256 * 1024 * 1024
/** How often a core checks whether the data was restored while it runs. */
const historyCheckEveryMs = 10_000
const databaseCheckEveryMs = 5_000

/** Throws outside of any call, so that the process ends and its supervisor starts it again. */
function endProcess() {
  setImmediate(() => {
    throw new Error('The data was restored while this core ran. Its caches are invalid; start it again.')
  })
}

/** Creates the modules of a core in the order of their dependencies. */
export function createCoreContext({
  config,
  secretKeys,
  workspaceSessionSecrets = [],
  database,
  nudge,
  logger,
  metrics = createCoreMetrics(),
  now = Date.now,
  random = Math.random,
  isAllowedDestination = createDestinationCheck({ allowedCidrs: splitList(config.DELIVERY_ALLOWED_CIDRS) }),
  onRestored = endProcess,
}: CoreDependencies) {
  const bus = createBus()
  const keyring = createKeyring(secretKeys)
  const core = new Core({
    config,
    database,
    db: database.collections,
    bus,
    history: database.history,
    keyring,
    secretBox: createSecretBox(keyring),
    plannedIds: createPlannedIds(keyring),
    idempotency: createIdempotency(createIdempotencyStore(database.collections), now),
    metrics,
    logger,
    nudge,
    isAllowedDestination,
    workspaceSessionSecrets,
    reads: createSlots({ max: readsMax, waitingMax: config.CALLS_MAX }),
    now,
    random,
  })
  const stores = createStores(core)
  const wakeups = wakeupsOf(core)
  const log = {
    wakeups,
    log: logOf(core),
    replayWindow: replayWindowOf(core),
    streamSubscriptions: streamSubscriptionsOf(core),
  }
  // Its caches subscribe to the bus before the parts that read them.
  siteDirectoryOf(core)
  const workspaces = createWorkspaceService(core)
  const availability = {
    operatorPresence: operatorPresenceOf(core),
    availabilityOf: (installation: Parameters<typeof readAvailability>[1]) => readAvailability(core, installation),
  }
  availabilitySenderOf(core)
  const mailer = mailerOf(core)
  const operators = createOperatorService(core, stores, log, workspaces, mailer)
  conversationRecordsOf.set(
    core,
    bound(core, { insertOnce: insertConversation, find: findConversations, setLastSession }),
  )
  // The check of sessions reads the caches, so they subscribe to the bus first.
  directoryOf(core)
  wakeups.settleWith(sessionCheckOf(core).settled)
  const visitors = createVisitorService(core)
  const search = searchJobs(core)
  deliveryWithdrawalOf.set(core, (redactions) => withdrawFromDeliveries(core, redactions))
  const conversations = conversationJobs(core)
  const commands = commandJobs(core)
  openDeliveries(core)
  const privacy = createPrivacyService(core, stores, log, workspaces, visitors)
  const historyCheck = createJob({
    name: 'check for restored data',
    everyMs: historyCheckEveryMs,
    async run() {
      if ((await database.currentHistory()) !== database.history) onRestored()
    },
    logger,
  })
  const databaseCheck = createDatabaseCheck({ database, metrics, logger, now })
  const databaseCheckJob = createJob({
    name: 'check of the database',
    everyMs: databaseCheckEveryMs,
    run: databaseCheck.check,
    logger,
  })
  const jobs = [
    ...[wakeupJobs, logJobs, streamJobs, availabilityJobs].flatMap((jobs) => jobs(core)),
    ...operators.jobs,
    ...sessionJobs(core),
    ...search,
    ...conversations,
    ...commands,
    ...deliveryJobs(core),
    ...feedJobs(core),
    ...privacy.jobs,
    ...answerMailJobs(core),
    ...operatorNoticeJobs(core),
    historyCheck,
    databaseCheckJob,
  ]
  observeJobs(metrics, jobs)
  observeLags(metrics, { ...feedLags(core), ...deliveryLags(core), search: searchIndexOf(core).lagMs })
  bus.on('due', (name, inMs) => jobs.find((job) => job.name === name)?.wake(inMs))

  return Object.assign(core, {
    ...log,
    ...workspaces,
    ...availability,
    ...operators,
    ...visitors,
    ...privacy,
    databaseCheck,
    stores,
    /** Counts the bytes of frames that gateways and operators have not read yet, and limits them. */
    unreadFrames: createSharedBytes(unreadFramesMaxBytes),
    /** Limits how many inbox streams open, or get a frame, in one turn of the event loop. */
    inboxTurns: createTurns(inboxesPerTurn),
    access: createAccess(keyring, now, {
      tokens: workspaces.tokens,
      workspaceSessions: workspaces.workspaceSessions,
      consoleCallers: operators.consoleSessions,
    }),

    /** Starts the jobs, and starts reading the wake-ups of other processes. */
    start() {
      log.wakeups.start()
      for (const job of jobs) job.start()
    },

    /** Stops the jobs, waits for running work and closes the connection to the database. */
    async stop() {
      closeDeliveries(core)
      searchIndexOf(core).close()
      closeFeed(core)
      await Promise.all(jobs.map((job) => job.stop()))
      await drainConversations(core)
      await log.log.drain()
      await inboxOf(core).drain()
      await log.wakeups.stop()
      mailer.close()
      await database.close()
    },
  })
}

/** Modules and stores of a core process. Its RPC services use them. */
export type CoreContext = ReturnType<typeof createCoreContext>
