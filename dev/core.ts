// `npm run core`: starts a core for use on one machine. No setting is required.
import { retryAtStart } from '../core/database/start-retries.ts'
import { runCore } from '../core/run-core.ts'
import { readDevConfig } from './config.ts'
import { seedDemo } from './demo-seed.ts'
import { startLocalCore } from './local-core.ts'

runCore(async (given, options) => {
  const dev = readDevConfig()
  const { core, config } = await startLocalCore(given, dev, options)
  if (dev.NODE_ENV === 'production') return core
  try {
    const withinMs = config.MONGODB_START_TIMEOUT_MS
    await retryAtStart(() => seedDemo(core, config, dev.DATA_DIR), { ...options, withinMs })
    return core
  } catch (error) {
    await core.stop()
    throw error
  }
})
