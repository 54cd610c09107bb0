import type { Logger } from 'pino'
import { type CoreConfig, requireMailSettings, requireSessionSigner, requireSettings } from './config.ts'
import { createCore, type RunningCore } from './context.ts'
import { openDatabase } from './database/database.ts'
import { hasKnownHoles, requireMatchingClock } from './database/database-check.ts'
import { requireMatchingKeys } from './database/key-check.ts'
import { retryAtStart } from './database/start-retries.ts'
import { parseSecretKeys } from './keys/keyring.ts'
import { createCoreMetrics } from './metrics.ts'
import type { Nudge } from './wakeups/wakeup-store.ts'
import { wakeupsOf } from './wakeups/wakeups.ts'
import { parseWorkspaceSessionSecrets } from './workspaces/workspace-sessions.ts'

export interface CoreStartOptions {
  logger: Logger
  /** Aborting it ends the wait for the database. */
  signal?: AbortSignal
  nudge?: Nudge
}

/** Maximum wait for what other cores have announced, if the database is slow. */
const longestWaitMs = 5_000

/** Starts a core. Waits for an unreachable database until the time limit, or until the signal aborts. */
export async function startCore(config: CoreConfig, { logger, signal, nudge }: CoreStartOptions): Promise<RunningCore> {
  requireSettings(config, 'MONGODB_URI', 'SECRET_KEYS')
  requireSessionSigner(config)
  requireMailSettings(config)
  const secretKeys = parseSecretKeys(config.SECRET_KEYS)
  const workspaceSessionSecrets = parseWorkspaceSessionSecrets(config.WORKSPACE_SESSION_SECRET)
  const metrics = createCoreMetrics()
  const settings = {
    uri: config.MONGODB_URI,
    name: config.MONGODB_DATABASE,
    timeoutMs: config.MONGODB_TIMEOUT_MS,
    metrics,
    migrates: config.MIGRATE_AT_START === 'on',
    onWait: (holder: string) => logger.info({ holder }, 'waiting for another process that migrates the database'),
  }
  async function open() {
    const database = await openDatabase(settings)
    try {
      await requireMatchingClock(database)
      await requireMatchingKeys(database.collections, secretKeys)
      if (hasKnownHoles(database.version))
        logger.warn({ version: database.version }, 'this MongoDB has known holes; update it to 7.0.32, 8.0.21 or 8.2.3')
      return database
    } catch (error) {
      await database.close()
      throw error
    }
  }
  const database = await retryAtStart(open, { logger, signal, withinMs: config.MONGODB_START_TIMEOUT_MS })
  const context = createCore({ config, secretKeys, workspaceSessionSecrets, database, nudge, logger, metrics })
  context.start()
  // Before its first call, a core must know which keys the others accept.
  await wakeupsOf(context).caughtUp(longestWaitMs)
  return context
}
