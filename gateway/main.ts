import closeWithGrace from 'close-with-grace'
import pino from 'pino'
import { createGateway } from './app.ts'
import { type Config, loadConfig, SettingError } from './config.ts'
import { createCoreTransport } from './core/core-transport.ts'

const GRACE_MS = 10_000

function readSettings(): Config {
  try {
    return loadConfig()
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    console.error(error.message)
    process.exit(1)
  }
}

const config = readSettings()
const logger = pino({
  level: config.LOG_LEVEL,
  base: { part: 'gateway' },
  redact: ['*.authorization', '*.accessGrant', '*.renewalToken', '*.body', 'req.headers', 'err.metadata'],
})
const transports = config.CORE_URLS.map(createCoreTransport)
const gateway = createGateway({ config, transports, logger })

closeWithGrace({ delay: GRACE_MS, logger }, async ({ err }) => {
  if (err) logger.fatal({ err }, 'stopping after an error')
  await gateway.close()
})

try {
  await gateway.listen({ port: config.GATEWAY_PORT, host: config.GATEWAY_HOST })
} catch (error) {
  if (config.GATEWAY_HOST !== '::' || (error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error
  // A machine without IPv6.
  await gateway.listen({ port: config.GATEWAY_PORT, host: '0.0.0.0' })
}
