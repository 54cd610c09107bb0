import { createBus } from './bus.ts'
import { type CommandService, createCommandService } from './commands/service.ts'
import { allowedCidrs } from './config.ts'
import { type ConversationService, createConversationService } from './conversations/service.ts'
import type { Database } from './database/database.ts'
import { createStores } from './database/stores.ts'
import { createDestinationCheck } from './deliveries/destination-check.ts'
import type { IsAllowedDestination } from './deliveries/lead-subscriptions.ts'
import { createDeliveryService, type DeliveryService } from './deliveries/service.ts'
import { createIdempotency } from './idempotency/idempotency.ts'
import { createKeyring, type SecretKey } from './keys/keyring.ts'
import { createPlannedIds } from './keys/planned-ids.ts'
import { createSecretBox } from './keys/secret-box.ts'
import type { CoreKit } from './kit.ts'
import { createLogService, type LogService } from './log/service.ts'
import { createCoreMetrics } from './metrics.ts'
import { createPrivacyService, type PrivacyService } from './privacy/service.ts'
import { type Access, createAccess } from './rpc/access.ts'
import { createVisitorService, type VisitorService } from './visitors/service.ts'
import { createWorkspaceService, type WorkspaceService } from './workspaces/service.ts'

/** Shared by all services of one core process. */
export interface CoreContext
  extends CoreKit,
    Omit<LogService, 'jobs'>,
    Omit<WorkspaceService, 'workspaceSessions'>,
    Omit<VisitorService, 'jobs'>,
    Omit<ConversationService, 'jobs' | 'drain'>,
    Omit<CommandService, 'jobs'>,
    Omit<DeliveryService, 'jobs' | 'close'>,
    Omit<PrivacyService, 'jobs'> {
  database: Database
  access: Access
  /** Starts the jobs and follows the wake-ups of other processes. */
  start(): void
  /** Finishes the work under way, then closes the database. */
  stop(): Promise<void>
}

export interface CoreDependencies
  extends Pick<CoreKit, 'config' | 'logger'>,
    Partial<Pick<CoreKit, 'metrics' | 'now' | 'random'>> {
  secretKeys: [SecretKey, ...SecretKey[]]
  /**
   * HS256 keys of workspace sessions. If empty, only the key set of the settings can verify
   * sessions.
   */
  workspaceSessionSecrets?: Uint8Array[]
  database: Database
  /** Default: checks destinations by the settings and DNS. */
  isAllowedDestination?: IsAllowedDestination
}

/** Creates the modules of a core in the order of their dependencies. */
export function createCoreContext({
  config,
  secretKeys,
  workspaceSessionSecrets = [],
  database,
  logger,
  metrics = createCoreMetrics(),
  now = Date.now,
  random = Math.random,
  isAllowedDestination = createDestinationCheck({ allowedCidrs: allowedCidrs(config) }),
}: CoreDependencies): CoreContext {
  const stores = createStores(database)
  const keyring = createKeyring(secretKeys)
  const kit: CoreKit = {
    config,
    stores,
    bus: createBus(),
    keyring,
    secretBox: createSecretBox(keyring),
    plannedIds: createPlannedIds(keyring),
    idempotency: createIdempotency(stores.idempotency, now),
    metrics,
    logger,
    now,
    random,
  }
  const log = createLogService(kit)
  const workspaces = createWorkspaceService(kit, { ...log, workspaceSessionSecrets })
  const visitors = createVisitorService(kit, log, workspaces)
  const conversations = createConversationService(kit, log, workspaces, visitors)
  const commands = createCommandService(kit, log, workspaces, visitors)
  const deliveries = createDeliveryService(kit, log, visitors, conversations, isAllowedDestination)
  const privacy = createPrivacyService(kit, log, visitors)
  const jobs = [log, visitors, conversations, commands, deliveries, privacy].flatMap((module) => module.jobs)

  return {
    ...kit,
    ...log,
    ...workspaces,
    ...visitors,
    ...conversations,
    ...commands,
    ...deliveries,
    ...privacy,
    database,
    access: createAccess(keyring, now, workspaces.workspaceSessions),

    start() {
      log.wakeups.start()
      for (const job of jobs) job.start()
    },

    async stop() {
      deliveries.close()
      await Promise.all(jobs.map((job) => job.stop()))
      await conversations.drain()
      await log.log.drain()
      await conversations.inbox.drain()
      await log.wakeups.stop()
      await database.close()
    },
  }
}
