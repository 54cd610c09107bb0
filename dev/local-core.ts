import type { CoreConfig } from '../core/config.ts'
import { type CoreStartOptions, startCore } from '../core/start-core.ts'
import { withDataFolderSecrets } from '../serve/data-folder.ts'
import type { DevConfig } from './config.ts'
import { attachEngine } from './engine/engine.ts'
import { nudgeOfDatabase } from './engine/nudge.ts'

/** Outside production, fills in missing secrets of the settings from the data folder. */
export const withLocalSecrets = async (given: CoreConfig, { DATA_DIR, NODE_ENV }: DevConfig): Promise<CoreConfig> =>
  NODE_ENV === 'production' ? given : withDataFolderSecrets(given, DATA_DIR)

type WaitOptions = Pick<CoreStartOptions, 'logger' | 'signal'>

/** Attaches the embedded engine if the settings name no database. */
export async function withDatabase(given: CoreConfig, dev: DevConfig, options: WaitOptions) {
  if (given.MONGODB_URI !== '') return { config: given, stop: async () => {} }
  const { uri, stop } = await attachEngine({ dataDir: dev.DATA_DIR, ...options })
  return { config: { ...given, MONGODB_URI: uri }, stop }
}

export const completeSettings = async (given: CoreConfig, dev: DevConfig, options: WaitOptions) =>
  withDatabase(await withLocalSecrets(given, dev), dev, options)

/** Stopping the core also stops the engine. */
export async function startLocalCore(given: CoreConfig, dev: DevConfig, options: CoreStartOptions) {
  const { config, stop } = await completeSettings(given, dev, options)
  const nudge = nudgeOfDatabase(config.MONGODB_URI, config.MONGODB_DATABASE)
  async function stopDatabase() {
    nudge?.close()
    await stop()
  }
  try {
    const core = await startCore(config, { ...options, nudge })
    const { stop: stopCore } = core
    core.stop = () => stopCore().finally(stopDatabase)
    return { core, config }
  } catch (error) {
    await stopDatabase()
    throw error
  }
}
