import { envSchema } from 'env-schema'
import Type, { type Static } from 'typebox'
import { createAddressCheck } from '../platform/addresses/addresses.ts'
import { metricsSettings } from '../platform/observability/config.ts'

/**
 * Settings of the core: environment variables with defaults. A test checks docs/settings.md against
 * it.
 */
export const coreSettings = Type.Object({
  CORE_HOST: Type.String({ default: '', description: 'Address to listen on; empty for all.' }),
  CORE_PORT: Type.Integer({ default: 8090, minimum: 1, maximum: 65535, description: 'Port of the internal services.' }),
  CALLS_MAX: Type.Integer({
    default: 5000,
    minimum: 10,
    description: 'Maximum number of concurrent calls without streams; further calls get 503.',
  }),
  CORE_TLS_CERT: Type.String({
    default: '',
    description: 'File with the certificate (PEM) for TLS on that port; empty for no TLS. Reloaded when it changes.',
  }),
  CORE_TLS_KEY: Type.String({ default: '', description: 'File with its key (PEM).' }),
  CORE_TLS_CA: Type.String({
    default: '',
    description: 'File with the authorities (PEM) for client certificates; empty if callers need no certificate.',
  }),
  DATA_DIR: Type.String({
    default: '.data',
    minLength: 1,
    description: 'Folder of the embedded engine and of generated secrets.',
  }),
  MONGODB_URI: Type.String({
    default: '',
    description: 'MongoDB server to use; without it the embedded engine runs in DATA_DIR.',
  }),
  MONGODB_DATABASE: Type.String({
    default: 'service',
    pattern: '^[A-Za-z0-9_-]{1,63}$',
    description: 'Name of the database.',
  }),
  MONGODB_TIMEOUT_MS: Type.Integer({
    default: 5000,
    minimum: 100,
    description: 'Time limit for one database call.',
  }),
  MONGODB_START_TIMEOUT_MS: Type.Integer({
    default: 60000,
    minimum: 0,
    maximum: 3600000,
    description: 'How long a starting core waits for an unreachable or slow database.',
  }),
  MIGRATE_AT_START: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description:
      'Whether a core creates missing indexes and runs migrations at its start. With `off` it does not start before `npm run migrate` has run.',
  }),
  SECRET_KEYS: Type.String({
    default: '',
    pattern: '^$|^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/_=-]{43,}(,[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/_=-]{43,})*$',
    description:
      'Key ids and keys (base64, 32 bytes or more), the current one first: `k2:…,k1:…`. Generated in DATA_DIR outside production.',
  }),
  WORKSPACE_SESSION_SECRET: Type.String({
    default: '',
    description:
      'Keys of workspace sessions signed with HS256, UTF-8 as written, 32 bytes or more, no commas: `new,old`, each accepted. Generated in DATA_DIR outside production.',
  }),
  WORKSPACE_SESSION_JWKS_URL: Type.String({
    default: '',
    pattern: '^$|^https://[^/?#@\\s]+([/?#]\\S*)?$|^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?([/?#]\\S*)?$',
    description:
      'Key set (JWKS) for workspace sessions signed with RS256, ES256 or EdDSA: an https URL, or http on this machine.',
  }),
  WORKSPACE_SESSION_JWKS_TIMEOUT_MS: Type.Integer({
    default: 3000,
    minimum: 100,
    maximum: 30000,
    description: 'Time limit for loading that key set.',
  }),
  WORKSPACE_SESSION_JWKS_FRESH_SECONDS: Type.Integer({
    default: 600,
    minimum: 1,
    maximum: 86400,
    description: 'How long the key set is cached.',
  }),
  WORKSPACE_SESSION_ISSUER: Type.String({
    default: '',
    maxLength: 512,
    description: 'Required `iss` of workspace sessions; empty for any.',
  }),
  NODE_ENV: Type.String({ default: 'development', description: '`production` does not use generated secrets.' }),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info', description: 'Minimum level of log lines.' },
  ),
  ...metricsSettings,
  GRANT_LIFETIME_SECONDS: Type.Integer({
    default: 900,
    minimum: 2,
    maximum: 86400,
    description: 'Lifetime of an access grant.',
  }),
  SESSION_LIFETIME_SECONDS: Type.Integer({
    default: 86400,
    minimum: 2,
    description: 'Maximum lifetime of a session, including renewals.',
  }),
  SESSION_CREATION_REPEAT_SECONDS: Type.Integer({
    default: 600,
    minimum: 1,
    description: 'How long a repeated session creation returns the same response.',
  }),
  IDEMPOTENCY_RETENTION_SECONDS: Type.Integer({
    default: 86400,
    minimum: 60,
    description: 'How long idempotency keys are kept.',
  }),
  MESSAGE_BODY_MAX_LENGTH: Type.Integer({
    default: 4000,
    minimum: 1,
    maximum: 100000,
    description: 'Maximum length of a message in code points; the gateways have the same setting.',
  }),
  PAGE_CONTEXT_MAX_BYTES: Type.Integer({
    default: 4096,
    minimum: 256,
    maximum: 1000000,
    description: 'Maximum size of a stored page context.',
  }),
  IDENTITY_ASSERTION_LIFETIME_SECONDS: Type.Integer({
    default: 300,
    minimum: 1,
    maximum: 86400,
    description: 'Maximum lifetime of an identity assertion.',
  }),
  IDENTITY_CLOCK_SKEW_SECONDS: Type.Integer({
    default: 30,
    minimum: 0,
    maximum: 3600,
    description: 'Allowed clock difference of hosts that sign identity assertions.',
  }),
  IDENTITY_CONTEXT_MAX_KEYS: Type.Integer({
    default: 10,
    minimum: 0,
    description: 'Maximum number of entries in the context of an identity assertion.',
  }),
  IDENTITY_CONTEXT_MAX_BYTES: Type.Integer({
    default: 1024,
    minimum: 2,
    description: 'Maximum size of the context of an identity assertion.',
  }),
  HISTORY_PAGE_MAX: Type.Integer({
    default: 100,
    minimum: 1,
    maximum: 1000,
    description: 'Maximum number of messages in a page of history; the gateways have the same setting.',
  }),
  HISTORY_PAGE_DEFAULT: Type.Integer({
    default: 50,
    minimum: 1,
    description: 'Messages in a page of history without a limit in the request.',
  }),
  REPLAY_WINDOW_EVENTS: Type.Integer({
    default: 1000,
    minimum: 1,
    description: 'Maximum number of events that a stream replays.',
  }),
  REPLAY_WINDOW_SECONDS: Type.Integer({
    default: 86400,
    minimum: 1,
    description: 'Maximum age of events that a stream replays.',
  }),
  TYPING_SECONDS: Type.Integer({
    default: 8,
    minimum: 1,
    maximum: 60,
    description: 'Time after which typing ends without another event.',
  }),
  TRANSIENT_EVENT_SECONDS: Type.Integer({
    default: 3600,
    minimum: 60,
    description: 'Minimum time that events without replay (typing) stay in the log.',
  }),
  TRANSIENT_SWEEP_SECONDS: Type.Integer({
    default: 60,
    minimum: 1,
    description: 'Pause between sweeps of such events.',
  }),
  INBOX_QUEUE_MAX: Type.Integer({
    default: 1000,
    minimum: 1,
    description: 'Maximum number of unread frames of an inbox stream before the core ends it.',
  }),
  SCREENSHOT_MAX_BYTES: Type.Integer({
    default: 5242880,
    minimum: 1024,
    description: 'Maximum size of a screenshot; the gateways have the same setting.',
  }),
  COMMAND_LIFETIME_SECONDS: Type.Integer({
    default: 120,
    minimum: 1,
    maximum: 86400,
    description: 'Time for the decision on a command, and after a granted consent for the upload.',
  }),
  COMMAND_RETENTION_DAYS: Type.Integer({
    default: 30,
    minimum: 1,
    description: 'How long commands are kept, with their screenshots.',
  }),
  SCREENSHOT_UPLOADS_MAX: Type.Integer({
    default: 4,
    minimum: 1,
    maximum: 100,
    description: 'Maximum number of concurrent uploads of one screenshot.',
  }),
  DELIVERY_ATTEMPT_DEADLINE_MS: Type.Integer({
    default: 10000,
    minimum: 100,
    maximum: 300000,
    description: 'Time limit for one delivery attempt: DNS, connect, TLS, headers and body together.',
  }),
  DELIVERY_LEASE_MS: Type.Integer({
    default: 5000,
    minimum: 1000,
    maximum: 600000,
    description: 'How long a lease of a delivery lasts; its worker renews it.',
  }),
  DELIVERY_RETENTION_DAYS: Type.Integer({
    default: 90,
    minimum: 1,
    description: 'How long deliveries are kept after their end, with their attempts and idempotency keys.',
  }),
  DELIVERY_ALLOWED_CIDRS: Type.String({
    default: '',
    description:
      'Non-public address ranges that destinations may use, separated by commas: `10.1.0.0/16,fd00:1::/32`. The workers have the same setting.',
  }),
  WEBHOOK_BODY_MAX_BYTES: Type.Integer({
    default: 65536,
    minimum: 256,
    maximum: 1048576,
    description: 'Maximum size of a body sent to a destination.',
  }),
  OUTBOX_MAX: Type.Integer({
    default: 50,
    minimum: 1,
    description: 'Maximum number of messages that a browser queues while it cannot send.',
  }),
  HEARTBEAT_SECONDS: Type.Integer({
    default: 15,
    minimum: 1,
    maximum: 300,
    description: 'Pause between heartbeats of a stream.',
  }),
  RECONNECT_MIN_MS: Type.Integer({
    default: 500,
    minimum: 1,
    description: 'Minimum pause before a browser reconnects.',
  }),
  RECONNECT_MAX_MS: Type.Integer({
    default: 20000,
    minimum: 1,
    description: 'Maximum pause before a browser reconnects.',
  }),
})

export type CoreConfig = Static<typeof coreSettings>

/**
 * A setting is missing or invalid. The message has the name and the allowed values, never the
 * value.
 */
export class SettingError extends Error {
  override readonly name = 'SettingError'
}

/** Reads and checks the settings. An empty variable counts as not set. Errors: `SettingError`. */
export function readCoreConfig(env: NodeJS.ProcessEnv = process.env): CoreConfig {
  const data = Object.fromEntries(
    Object.entries(env).filter(([name, value]) => name in coreSettings.properties && value),
  )
  try {
    return checkCombinations(envSchema<CoreConfig>({ schema: coreSettings, data, env: false }))
  } catch (error) {
    const { errors } = error as { errors?: { instancePath: string }[] }
    if (errors === undefined) throw error
    const names = [...new Set(errors.map(({ instancePath }) => instancePath.slice(1)))]
    throw new SettingError(names.map((name) => `${name} ${allowed(name as keyof CoreConfig)}`).join('\n'))
  }
}

function checkCombinations(config: CoreConfig): CoreConfig {
  if ((config.CORE_TLS_CERT === '') !== (config.CORE_TLS_KEY === ''))
    throw new SettingError('CORE_TLS_CERT and CORE_TLS_KEY are needed together')
  if (config.CORE_TLS_CA && !config.CORE_TLS_CERT) throw new SettingError('CORE_TLS_CA needs CORE_TLS_CERT')
  try {
    createAddressCheck({ allowedCidrs: allowedCidrs(config) })
  } catch {
    throw new SettingError('DELIVERY_ALLOWED_CIDRS must be address ranges like 10.1.0.0/16, separated by commas')
  }
  return config
}

/** The ranges of `DELIVERY_ALLOWED_CIDRS`. */
export function allowedCidrs({ DELIVERY_ALLOWED_CIDRS }: Pick<CoreConfig, 'DELIVERY_ALLOWED_CIDRS'>): string[] {
  return DELIVERY_ALLOWED_CIDRS.split(',')
    .map((range) => range.trim())
    .filter(Boolean)
}

function allowed(name: keyof CoreConfig): string {
  const { type, minimum, maximum, description, anyOf } = coreSettings.properties[name] as {
    type?: string
    minimum?: number
    maximum?: number
    description?: string
    anyOf?: { const: string }[]
  }
  if (anyOf) return `must be one of ${anyOf.map((literal) => literal.const).join(', ')}`
  if (type !== 'integer') return `is invalid: ${description}`
  return `must be a whole number${minimum === undefined ? '' : `, ${minimum} or more`}${maximum === undefined ? '' : `, ${maximum} at most`}`
}
