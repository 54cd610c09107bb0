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

/** Completes the environment. Without settings of hosts, only a proxy on this machine reaches the parts. */
function environmentOfParts(given: NodeJS.ProcessEnv) {
  const { DOMAIN } = serveSettings.read(given)
  const defaults: NodeJS.ProcessEnv = {
    CORE_HOST: '127.0.0.1',
    GATEWAY_HOST: '127.0.0.1',
    METRICS_HOST: '127.0.0.1',
    TRUST_PROXY: 'loopback',
    ...(DOMAIN && { PUBLIC_URL: `https://${DOMAIN}` }),
  }
  const missing = Object.entries(defaults).filter(([name]) => !given[name] && !given[`${name}_FILE`])
  return { ...given, ...Object.fromEntries(missing) }
}

export function readServeConfig(given: NodeJS.ProcessEnv = process.env) {
  return { ...serveSettings.read(given), env: environmentOfParts(given) }
}
