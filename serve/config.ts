import { defineSettings, filledText, integer, text } from '../platform/settings/settings.ts'

export const serveSettings = defineSettings({
  DATA_DIR: filledText('.data', 'Folder of the generated secrets and of the backups.'),
  BACKUP_DIR: text('Folder of the backups; default: `backups` in DATA_DIR.'),
  BACKUP_KEEP: integer(7, 1, 1_000, 'How many backups in that folder are kept.'),
  BACKUP_PASSPHRASE: text('Encrypts the backups; empty for none. A restore needs it too.', { pattern: '^$|^.{12,}$' }),
  DOMAIN: text(
    'Name at which visitors and operators reach the service, such as `chat.example.com`. A proxy serves it over https.',
    {
      pattern: '^$|^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$',
    },
  ),
})

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
