import { contractLimits } from '../contract/limits.ts'
import { allowedCidrsSetting, parseAllowedCidrs } from '../platform/addresses/allowed-cidrs.ts'
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

const yearSeconds = 31_536_000

const retentionDays = (days: number, what: string) =>
  integer(days, 0, 3_650, `${what}, in workspaces without a period of their own; 0 for no limit.`)

export const coreSettings = defineSettings({
  CORE_HOST: text('Address to listen on; empty for all.'),
  CORE_PORT: integer(8090, 1, 65_535, 'Port of the internal services.'),
  CALLS_MAX: integer(
    5_000,
    10,
    1_000_000,
    'Maximum number of concurrent calls without streams; further calls get 503.',
  ),
  PUBLIC_URL: text(
    'Origin of the gateways as visitors reach them, for the URLs of uploaded pictures: https, or http on this machine. Default: the origin at which the console is open.',
    { pattern: '^$|^https://[^/?#@\\s]+$|^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?$' },
  ),
  CORE_TLS_CERT: text(
    'File with the certificate (PEM) for TLS on that port; empty for no TLS. Reloaded when it changes.',
  ),
  CORE_TLS_KEY: text('File with its key (PEM).'),
  CORE_TLS_CA: text('File with the authorities (PEM) for client certificates; empty if callers need no certificate.'),
  MONGODB_URI: text(
    'Address of the MongoDB server, such as mongodb://user:password@localhost; required, but not by `npm start` and `npm run core`.',
  ),
  MONGODB_DATABASE: filledText('service', 'Name of the database.', '^[A-Za-z0-9_-]{1,63}$'),
  MONGODB_TIMEOUT_MS: integer(5_000, 100, 600_000, 'Time limit for one database call.'),
  MONGODB_START_TIMEOUT_MS: integer(
    60_000,
    0,
    3_600_000,
    'How long a starting core waits for an unreachable or slow database.',
  ),
  MIGRATE_AT_START: onOff(
    'Whether a core creates missing indexes and runs migrations at its start. With `off` it does not start before `npm run migrate` has run.',
  ),
  SECRET_KEYS: text(
    'Key ids and keys (base64, 32 bytes or more), the current one first: `k2:…,k1:…`. Required in production.',
    { pattern: '^$|^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/_=-]{43,}(,[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/_=-]{43,})*$' },
  ),
  WORKSPACE_SESSION_SECRET: text(
    'Keys of workspace sessions signed with HS256, UTF-8 as written, 32 bytes or more, no commas: `new,old`, each accepted. Required in production, unless there is a key set.',
  ),
  WORKSPACE_SESSION_JWKS_URL: text(
    'Key set (JWKS) for workspace sessions signed with RS256, ES256 or EdDSA: an https URL, or http on this machine.',
    {
      pattern:
        '^$|^https://[^/?#@\\s]+([/?#]\\S*)?$|^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?([/?#]\\S*)?$',
    },
  ),
  WORKSPACE_SESSION_ISSUER: text('Required `iss` of workspace sessions; empty for any.', { maxLength: 512 }),
  OIDC_ISSUER: text(
    'OpenID Connect provider at which operators sign in to the console: an https URL, or http on this machine; empty for none.',
    {
      pattern:
        '^$|^https://[^/?#@\\s]+(/[^?#\\s]*)?$|^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?(/[^?#\\s]*)?$',
    },
  ),
  OIDC_CLIENT_ID: text('Client id at the provider. Its redirect URI is `https://<gateway>/console/session/callback`.'),
  OIDC_CLIENT_SECRET: text('Client secret at the provider; empty for a public client.'),
  OIDC_SCOPE: filledText(
    'openid profile email',
    'Scopes requested at the provider. Many providers issue refresh tokens only with `offline_access`.',
  ),
  OIDC_WORKSPACE: text('Workspace of all operators of the provider; empty if a claim names it.'),
  OIDC_WORKSPACE_CLAIM: filledText('workspace_id', 'Claim with the workspace, unless OIDC_WORKSPACE is set.'),
  OIDC_ROLES_CLAIM: filledText('groups', 'Claim with the roles of an operator: a list, or a text with spaces.'),
  OIDC_ROLES: text(
    'Scopes of each role, as `agent=messages:read messages:write;admin=*`; empty if the claim has scopes.',
  ),
  SMTP_URL: text(
    'Mail server for invitations, sign-in links and notifications of operators: `smtps://user:password@host`, or `smtp://host:port`; empty for none. Needs SMTP_FROM and PUBLIC_URL.',
    { pattern: '^$|^smtps?://\\S+$' },
  ),
  SMTP_FROM: text('Sender of mails: an address, or `Name <address>`.', { maxLength: 320 }),
  ...processSettings,
  GRANT_LIFETIME_SECONDS: integer(900, 2, 86_400, 'Lifetime of an access grant.'),
  SESSION_LIFETIME_SECONDS: integer(86_400, 2, 10 * yearSeconds, 'Maximum lifetime of a session, including renewals.'),
  SESSION_RENEWABLE_SECONDS: integer(
    7_200,
    0,
    10 * yearSeconds,
    'How long a session can be renewed after its grant has expired, within its maximum lifetime.',
  ),
  SESSION_CREATION_REPEAT_SECONDS: integer(
    600,
    1,
    86_400,
    'How long a repeated session creation returns the same response.',
  ),
  IDEMPOTENCY_RETENTION_SECONDS: integer(86_400, 60, yearSeconds, 'How long idempotency keys are kept.'),
  MESSAGE_BODY_MAX_LENGTH: integer(
    4_000,
    1,
    100_000,
    'Maximum length of a message in code points. A message of a visitor may have at most 4,000, even if this value is higher.',
  ),
  PAGE_CONTEXT_MAX_BYTES: integer(4_096, 256, 1_000_000, 'Maximum size of a stored page context.'),
  IDENTITY_ASSERTION_LIFETIME_SECONDS: integer(300, 1, 86_400, 'Maximum lifetime of an identity assertion.'),
  REPLAY_WINDOW_EVENTS: integer(1_000, 1, 100_000, 'Maximum number of events that a stream replays.'),
  REPLAY_WINDOW_SECONDS: integer(86_400, 1, yearSeconds, 'Maximum age of events that a stream replays.'),
  TYPING_SECONDS: integer(8, 1, 60, 'Time after which typing ends without another event.'),
  ANSWER_PAUSE_SECONDS: integer(
    30,
    1,
    600,
    'Time without an append after which a growing message of a bot is interrupted.',
  ),
  INBOX_QUEUE_MAX: integer(
    1_000,
    1,
    100_000,
    'Maximum number of unread frames of an inbox stream before the core ends it.',
  ),
  SCREENSHOT_MAX_BYTES: integer(
    contractLimits.screenshotMaxBytes,
    1_024,
    contractLimits.screenshotMaxBytes,
    'Maximum size of a screenshot.',
  ),
  COMMAND_LIFETIME_SECONDS: integer(
    120,
    1,
    86_400,
    'Time for the decision on a command, and after a granted consent for the upload.',
  ),
  COMMAND_RETENTION_DAYS: integer(30, 1, 3_650, 'How long commands are kept, with their screenshots.'),
  DELIVERY_ATTEMPT_DEADLINE_MS: integer(
    10_000,
    100,
    300_000,
    'Time limit for one delivery attempt: DNS, connect, TLS, headers and body together.',
  ),
  DELIVERY_LEASE_MS: integer(5_000, 1_000, 600_000, 'How long a lease of a delivery lasts; its worker renews it.'),
  DELIVERY_RETENTION_DAYS: integer(
    90,
    1,
    3_650,
    'How long deliveries are kept after their end, with their attempts and idempotency keys.',
  ),
  EVENT_HOOKS_MAX: integer(100, 1, 1_000, 'Maximum number of event hooks of a workspace.'),
  LEAD_SUBSCRIPTIONS_MAX: integer(100, 1, 1_000, 'Maximum number of lead subscriptions of a workspace.'),
  DELIVERY_ALLOWED_CIDRS: allowedCidrsSetting,
  RETENTION_CONVERSATION_DAYS: retentionDays(
    0,
    'How long conversations with messages are kept after their last activity',
  ),
  RETENTION_LEAD_DAYS: retentionDays(0, 'How long leads are kept, with their deliveries'),
  RETENTION_EMPTY_SESSION_DAYS: retentionDays(
    1,
    'How long sessions without a message or form are kept after they expired',
  ),
  RETENTION_AUDIT_DAYS: retentionDays(0, 'How long audit entries and records of finished erasures are kept'),
  RETENTION_HELD_DELIVERY_DAYS: retentionDays(0, 'How long deliveries are held'),
  RECONNECT_MAX_MS: integer(20_000, 1, 3_600_000, 'Maximum pause before a browser reconnects.'),
})

export type CoreConfig = ReturnType<typeof coreSettings.read>

/** Errors: `SettingError`. */
export function readCoreConfig(env: NodeJS.ProcessEnv = process.env): CoreConfig {
  const config = coreSettings.read(env)
  if ((config.CORE_TLS_CERT === '') !== (config.CORE_TLS_KEY === ''))
    throw new SettingError('CORE_TLS_CERT and CORE_TLS_KEY are needed together')
  if (config.CORE_TLS_CA && !config.CORE_TLS_CERT) throw new SettingError('CORE_TLS_CA needs CORE_TLS_CERT')
  if (config.OIDC_ISSUER && !config.OIDC_CLIENT_ID) throw new SettingError('OIDC_ISSUER needs OIDC_CLIENT_ID')
  parseAllowedCidrs(config.DELIVERY_ALLOWED_CIDRS)
  return config
}

/** Errors: `SettingError`. */
export function requireSettings(config: CoreConfig, ...names: ('MONGODB_URI' | 'SECRET_KEYS')[]) {
  for (const name of names) {
    const { description } = coreSettings.properties[name] as SettingSchema
    if (config[name] === '') throw new SettingError(`${name} is missing: ${description}`)
  }
}

/**
 * The origin of a request could come from an attacker, so links in mails need `PUBLIC_URL`. Errors:
 * `SettingError`.
 */
export function requireMailSettings({ SMTP_URL, SMTP_FROM, PUBLIC_URL }: CoreConfig) {
  if (SMTP_URL && !(SMTP_FROM && PUBLIC_URL)) throw new SettingError('SMTP_URL needs SMTP_FROM and PUBLIC_URL')
}

/** Errors: `SettingError`. */
export function requireSessionSigner(config: CoreConfig) {
  if (config.WORKSPACE_SESSION_SECRET || config.WORKSPACE_SESSION_JWKS_URL) return
  throw new SettingError(
    'WORKSPACE_SESSION_SECRET and WORKSPACE_SESSION_JWKS_URL are missing: one of them must verify workspace sessions',
  )
}
