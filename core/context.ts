import { createSlots } from '../platform/concurrency/slots.ts'
import { availabilityJobs, availabilitySenderOf } from './availability/availability-sender.ts'
import { operatorPresenceOf } from './availability/operator-presence.ts'
import { createBus } from './bus.ts'
import { commandJobs } from './commands/screenshots.ts'
import { inboxOf } from './conversations/inbox.ts'
import { conversationJobs, drainConversations } from './conversations/jobs.ts'
import { Core } from './core.ts'
import type { Database } from './database/database.ts'
import { databaseJobs } from './database/database-check.ts'
import { deliveryJobs, deliveryLags, openDeliveries } from './deliveries/jobs.ts'
import { feedJobs, feedLags } from './feed/jobs.ts'
import { createIdempotency, createIdempotencyStore } from './idempotency/idempotency.ts'
import { createKeyring, createPlannedIds, type SecretKey } from './keys/keyring.ts'
import { createSecretBox } from './keys/secret-box.ts'
import { logOf } from './log/event-log.ts'
import { logJobs } from './log/transient-sweep.ts'
import { mailerOf } from './mail/mailer.ts'
import { createCoreMetrics, observeJobs, observeLags } from './metrics.ts'
import { answerMailJobs } from './notices/answer-mails.ts'
import { operatorNoticeJobs } from './notices/operator-notices.ts'
import { consoleSessionsOf } from './operators/console-sessions.ts'
import { identityProviderOf, operatorJobs } from './operators/provider-sign-in.ts'
import { teamsOf } from './operators/teams.ts'
import { privacyJobs } from './privacy/jobs.ts'
import { searchIndexOf, searchJobs } from './search/search-index.ts'
import { sessionCheckOf, sessionJobs } from './sessions/session-check.ts'
import { directoryOf, visitorAccessOf } from './sessions/visitor-access.ts'
import { replayWindowOf } from './streams/replay-window.ts'
import { streamJobs, streamSubscriptionsOf } from './streams/stream-subscriptions.ts'
import type { Nudge } from './wakeups/wakeup-store.ts'
import { wakeupJobs, wakeupsOf } from './wakeups/wakeups.ts'
import { workspaceSessionsOf } from './workspaces/workspace-sessions.ts'
import { siteDirectoryOf } from './workspaces/workspaces.ts'

interface CoreDependencies extends Pick<Core, 'config' | 'logger'>, Partial<Pick<Core, 'metrics' | 'now' | 'random'>> {
  secretKeys: [SecretKey, ...SecretKey[]]
  /** HS256 keys that verify workspace sessions. Without any, only the key set of the settings does. */
  workspaceSessionSecrets?: Uint8Array[]
  database: Database
  nudge?: Nudge
  /** Called if the data was restored under this core. By default, ends the process. */
  onRestored?: () => void
}

/** Maximum number of concurrent paged reads of operators and services. */
const readsMax = 4

/**
 * Parts that are made in this order, because caches must subscribe to the bus before their readers. Wrong settings
 * of the identity provider end the start.
 */
const firstParts: ((core: Core) => unknown)[] = [
  wakeupsOf,
  logOf,
  replayWindowOf,
  streamSubscriptionsOf,
  siteDirectoryOf,
  workspaceSessionsOf,
  operatorPresenceOf,
  availabilitySenderOf,
  mailerOf,
  teamsOf,
  consoleSessionsOf,
  identityProviderOf,
  directoryOf,
  sessionCheckOf,
  visitorAccessOf,
]

/** Throws outside of any call, so that the process ends and its supervisor starts it again. */
function endProcess() {
  setImmediate(() => {
    throw new Error('The data was restored while this core ran. Its caches are invalid; start it again.')
  })
}

export function createCore({
  config,
  secretKeys,
  workspaceSessionSecrets = [],
  database,
  nudge,
  logger,
  metrics = createCoreMetrics(),
  now = Date.now,
  random = Math.random,
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
    workspaceSessionSecrets,
    reads: createSlots({ max: readsMax, waitingMax: config.CALLS_MAX }),
    now,
    random,
  })
  for (const part of firstParts) part(core)
  wakeupsOf(core).settleWith(sessionCheckOf(core).settled)
  const search = searchJobs(core)
  const conversations = conversationJobs(core)
  const commands = commandJobs(core)
  openDeliveries(core)
  const privacy = privacyJobs(core)
  const jobs = [
    ...[wakeupJobs, logJobs, streamJobs, availabilityJobs, operatorJobs, sessionJobs].flatMap((jobs) => jobs(core)),
    ...search,
    ...conversations,
    ...commands,
    ...deliveryJobs(core),
    ...feedJobs(core),
    ...privacy,
    ...answerMailJobs(core),
    ...operatorNoticeJobs(core),
    ...databaseJobs(core, onRestored),
  ]
  observeJobs(metrics, jobs)
  observeLags(metrics, { ...feedLags(core), ...deliveryLags(core), search: searchIndexOf(core).lagMs })
  bus.on('due', (name, inMs) => jobs.find((job) => job.name === name)?.wake(inMs))

  return Object.assign(core, {
    start() {
      wakeupsOf(core).start()
      for (const job of jobs) job.start()
    },

    async stop() {
      core.closing.abort()
      await Promise.all(jobs.map((job) => job.stop()))
      await drainConversations(core)
      await logOf(core).drain()
      await inboxOf(core).drain()
      await wakeupsOf(core).stop()
      mailerOf(core).close()
      await database.close()
    },
  })
}

export type RunningCore = ReturnType<typeof createCore>
