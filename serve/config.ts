import { defineSettings, filledText, integer, text } from '../platform/settings/settings.ts'
import texts from './settings.json' with { type: 'json' }

export const serveSettings = defineSettings(
  {
    DATA_DIR: filledText('.data'),
    BACKUP_DIR: text(),
    BACKUP_KEEP: integer(7, 1, 1_000),
    BACKUP_PASSPHRASE: text({ pattern: '^$|^.{12,}$' }),
    DOMAIN: text({ pattern: '^$|^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$' }),
  },
  texts,
)

/**
 * Reads the settings, and completes the environment of the parts. Without settings of hosts, only a proxy on this
 * machine reaches them.
 */
export function readServeConfig(given: NodeJS.ProcessEnv = process.env) {
  const settings = serveSettings.read(given)
  const defaults: NodeJS.ProcessEnv = {
    CORE_HOST: '127.0.0.1',
    GATEWAY_HOST: '127.0.0.1',
    METRICS_HOST: '127.0.0.1',
    TRUST_PROXY: 'loopback',
    ...(settings.DOMAIN && { PUBLIC_URL: `https://${settings.DOMAIN}` }),
  }
  const missing = Object.entries(defaults).filter(([name]) => !given[name] && !given[`${name}_FILE`])
  return { ...settings, env: { ...given, ...Object.fromEntries(missing) } }
}
