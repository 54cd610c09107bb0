import type { Logger } from 'pino'
import type { CoreConfig } from './config.ts'
import { type CoreContext, createCoreContext } from './context.ts'
import { dataFolderSecrets, parseSecretKeys } from './secrets.ts'
import { openDatabase } from './store/database.ts'
import { attachEngine } from './store/embedded/engine.ts'

export interface Core {
  context: CoreContext
  /** Of the database in use. */
  mongodbUri: string
  /** HS256 key of workspace sessions, where the data folder made one. */
  workspaceSessionSecret: string
  stop(): Promise<void>
}

/** A core with its database, the embedded engine among them where no server is named. Errors: say which setting is wrong. */
export async function startCore(config: CoreConfig, logger: Logger): Promise<Core> {
  if (config.NODE_ENV === 'production' && config.SECRET_KEYS === '') {
    throw new Error('SECRET_KEYS is missing: in production the secret keys come from the settings')
  }
  const generated = config.NODE_ENV === 'production' ? undefined : await dataFolderSecrets(config.DATA_DIR)
  const secretKeys = parseSecretKeys(config.SECRET_KEYS || (generated?.secretKeys ?? ''))
  const engine = config.MONGODB_URI === '' ? await attachEngine({ dataDir: config.DATA_DIR, logger }) : undefined
  const mongodbUri = engine?.uri ?? config.MONGODB_URI
  try {
    const database = await openDatabase({
      uri: mongodbUri,
      name: config.MONGODB_DATABASE,
      timeoutMs: config.MONGODB_TIMEOUT_MS,
    })
    const context = createCoreContext({ config, secretKeys, database, logger })
    context.start()
    return {
      context,
      mongodbUri,
      workspaceSessionSecret: generated?.workspaceSessionSecret ?? '',
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
