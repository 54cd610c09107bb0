import type { Logger } from 'pino'
import type { CoreConfig } from './config.ts'
import { type CoreContext, createCoreContext } from './context.ts'
import { openDatabase } from './database/database.ts'
import { attachEngine } from './database/embedded/engine.ts'
import { retryAtStart } from './database/start-retries.ts'
import { createCoreMetrics } from './metrics.ts'
import { dataFolderSecrets, settingsSecretKeys } from './secrets.ts'
import { parseWorkspaceSessionSecrets } from './workspaces/workspace-sessions.ts'

export interface Core {
  context: CoreContext
  /** URI of the database in use. */
  mongodbUri: string
  /** First HS256 key of workspace sessions; undefined if only a key set verifies them. */
  workspaceSessionSecret: Uint8Array | undefined
  stop(): Promise<void>
}

/**
 * Starts a core with its database, or with the embedded engine if no server is configured. It waits
 * for an unreachable database until the configured time is over or the signal is aborted. Errors:
 * name the wrong setting, or the failure that it waited for.
 */
export async function startCore(config: CoreConfig, logger: Logger, signal?: AbortSignal): Promise<Core> {
  const secretKeys = await settingsSecretKeys(config)
  if (
    config.NODE_ENV === 'production' &&
    config.WORKSPACE_SESSION_SECRET === '' &&
    config.WORKSPACE_SESSION_JWKS_URL === ''
  ) {
    throw new Error(
      'WORKSPACE_SESSION_SECRET and WORKSPACE_SESSION_JWKS_URL are missing: in production one of them must verify workspace sessions',
    )
  }
  const generated = config.NODE_ENV === 'production' ? undefined : await dataFolderSecrets(config.DATA_DIR)
  const workspaceSessionSecrets = parseWorkspaceSessionSecrets(
    config.WORKSPACE_SESSION_SECRET || (generated?.workspaceSessionSecret ?? ''),
  )
  const engine =
    config.MONGODB_URI === '' ? await attachEngine({ dataDir: config.DATA_DIR, logger, signal }) : undefined
  const mongodbUri = engine?.uri ?? config.MONGODB_URI
  const metrics = createCoreMetrics()
  try {
    const settings = {
      uri: mongodbUri,
      name: config.MONGODB_DATABASE,
      timeoutMs: config.MONGODB_TIMEOUT_MS,
      metrics,
      migrates: config.MIGRATE_AT_START === 'on',
    }
    const database = await retryAtStart(() => openDatabase(settings), {
      logger,
      signal,
      withinMs: config.MONGODB_START_TIMEOUT_MS,
    })
    const context = createCoreContext({ config, secretKeys, workspaceSessionSecrets, database, logger, metrics })
    context.start()
    return {
      context,
      mongodbUri,
      workspaceSessionSecret: workspaceSessionSecrets[0],
      async stop() {
        await context.stop()
        await engine?.stop()
      },
    }
  } catch (error) {
    await engine?.stop()
    throw error
  }
}
