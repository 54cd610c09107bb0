import { contractLimits } from '../contract/limits.ts'
import { parseAllowedCidrs } from '../platform/addresses/addresses.ts'
import { processSettings } from '../platform/settings/process-settings.ts'
import {
  defineSettings,
  filledText,
  integer,
  onOff,
  SettingError,
  type SettingSchema,
  text,
} from '../platform/settings/settings.ts'
import texts from './settings.json' with { type: 'json' }

const yearSeconds = 31_536_000

export const coreSettings = defineSettings(
  {
    CORE_HOST: text(),
    CORE_PORT: integer(8090, 1, 65_535),
    CALLS_MAX: integer(5_000, 10, 1_000_000),
    PUBLIC_URL: text({
      pattern: '^$|^https://[^/?#@\\s]+$|^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?$',
    }),
    CORE_TLS_CERT: text(),
    CORE_TLS_KEY: text(),
    CORE_TLS_CA: text(),
    MONGODB_URI: text(),
    MONGODB_DATABASE: filledText('service', '^[A-Za-z0-9_-]{1,63}$'),
    MONGODB_TIMEOUT_MS: integer(5_000, 100, 600_000),
    MONGODB_START_TIMEOUT_MS: integer(60_000, 0, 3_600_000),
    MIGRATE_AT_START: onOff(),
    SECRET_KEYS: text({
      pattern: '^$|^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/_=-]{43,}(,[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/_=-]{43,})*$',
    }),
    WORKSPACE_SESSION_SECRET: text(),
    WORKSPACE_SESSION_JWKS_URL: text({
      pattern:
        '^$|^https://[^/?#@\\s]+([/?#]\\S*)?$|^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?([/?#]\\S*)?$',
    }),
    WORKSPACE_SESSION_ISSUER: text({ maxLength: 512 }),
    OIDC_ISSUER: text({
      pattern:
        '^$|^https://[^/?#@\\s]+(/[^?#\\s]*)?$|^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?(/[^?#\\s]*)?$',
    }),
    OIDC_CLIENT_ID: text(),
    OIDC_CLIENT_SECRET: text(),
    OIDC_SCOPE: filledText('openid profile email'),
    OIDC_WORKSPACE: text(),
    OIDC_WORKSPACE_CLAIM: filledText('workspace_id'),
    OIDC_ROLES_CLAIM: filledText('groups'),
    OIDC_ROLES: text(),
    SMTP_URL: text({ pattern: '^$|^smtps?://\\S+$' }),
    SMTP_FROM: text({ maxLength: 320 }),
    ...processSettings,
    GRANT_LIFETIME_SECONDS: integer(900, 2, 86_400),
    SESSION_LIFETIME_SECONDS: integer(86_400, 2, 10 * yearSeconds),
    SESSION_RENEWABLE_SECONDS: integer(7_200, 0, 10 * yearSeconds),
    SESSION_CREATION_REPEAT_SECONDS: integer(600, 1, 86_400),
    IDEMPOTENCY_RETENTION_SECONDS: integer(86_400, 60, yearSeconds),
    MESSAGE_BODY_MAX_LENGTH: integer(4_000, 1, 100_000),
    PAGE_CONTEXT_MAX_BYTES: integer(4_096, 256, 1_000_000),
    IDENTITY_ASSERTION_LIFETIME_SECONDS: integer(300, 1, 86_400),
    REPLAY_WINDOW_EVENTS: integer(1_000, 1, 100_000),
    REPLAY_WINDOW_SECONDS: integer(86_400, 1, yearSeconds),
    TYPING_SECONDS: integer(8, 1, 60),
    ANSWER_PAUSE_SECONDS: integer(30, 1, 600),
    INBOX_QUEUE_MAX: integer(1_000, 1, 100_000),
    SCREENSHOT_MAX_BYTES: integer(contractLimits.screenshotMaxBytes, 1_024, contractLimits.screenshotMaxBytes),
    COMMAND_LIFETIME_SECONDS: integer(120, 1, 86_400),
    COMMAND_RETENTION_DAYS: integer(30, 1, 3_650),
    DELIVERY_ATTEMPT_DEADLINE_MS: integer(10_000, 100, 300_000),
    DELIVERY_LEASE_MS: integer(5_000, 1_000, 600_000),
    DELIVERY_RETENTION_DAYS: integer(90, 1, 3_650),
    EVENT_HOOKS_MAX: integer(100, 1, 1_000),
    LEAD_SUBSCRIPTIONS_MAX: integer(100, 1, 1_000),
    DELIVERY_ALLOWED_CIDRS: text(),
    RETENTION_CONVERSATION_DAYS: integer(0, 0, 3_650),
    RETENTION_LEAD_DAYS: integer(0, 0, 3_650),
    RETENTION_EMPTY_SESSION_DAYS: integer(1, 0, 3_650),
    RETENTION_AUDIT_DAYS: integer(0, 0, 3_650),
    RETENTION_HELD_DELIVERY_DAYS: integer(0, 0, 3_650),
    RECONNECT_MAX_MS: integer(20_000, 1, 3_600_000),
  },
  texts,
)

export type CoreConfig = ReturnType<typeof coreSettings.read>

/** Reads and checks the settings. Errors: `SettingError`. */
export function readCoreConfig(env: NodeJS.ProcessEnv = process.env): CoreConfig {
  const config = coreSettings.read(env)
  if ((config.CORE_TLS_CERT === '') !== (config.CORE_TLS_KEY === ''))
    throw new SettingError('CORE_TLS_CERT and CORE_TLS_KEY are needed together')
  if (config.CORE_TLS_CA && !config.CORE_TLS_CERT) throw new SettingError('CORE_TLS_CA needs CORE_TLS_CERT')
  if (config.OIDC_ISSUER && !config.OIDC_CLIENT_ID) throw new SettingError('OIDC_ISSUER needs OIDC_CLIENT_ID')
  parseAllowedCidrs(config.DELIVERY_ALLOWED_CIDRS)
  return config
}

/** Throws a `SettingError` if one of the named settings is empty. */
export function requireSettings(config: CoreConfig, ...names: ('MONGODB_URI' | 'SECRET_KEYS')[]) {
  for (const name of names) {
    const { description } = coreSettings.properties[name] as SettingSchema
    if (config[name] === '') throw new SettingError(`${name} is missing: ${description}`)
  }
}

/**
 * Throws a `SettingError` if mails would have no sender or no links. The origin of a request could come from an
 * attacker, so links in mails need `PUBLIC_URL`.
 */
export function requireMailSettings({ SMTP_URL, SMTP_FROM, PUBLIC_URL }: CoreConfig) {
  if (SMTP_URL && !(SMTP_FROM && PUBLIC_URL)) throw new SettingError('SMTP_URL needs SMTP_FROM and PUBLIC_URL')
}

/** Throws a `SettingError` without a secret and a key set for workspace sessions. */
export function requireSessionSigner(config: CoreConfig) {
  if (config.WORKSPACE_SESSION_SECRET || config.WORKSPACE_SESSION_JWKS_URL) return
  throw new SettingError(
    'WORKSPACE_SESSION_SECRET and WORKSPACE_SESSION_JWKS_URL are missing: one of them must verify workspace sessions',
  )
}
