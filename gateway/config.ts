import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import envSchema from 'env-schema'
import { type Static, Type } from 'typebox'
import { CORE_URLS_DESCRIPTION, CORE_URLS_RULE, parseCoreUrls } from '../core-client/core-urls.ts'
import { metricsSettings } from '../platform/observability/config.ts'

const integer = (fallback: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description })

/** Most bytes of one code point in UTF-8. */
const CODE_POINT_MAX_BYTES = 4
const OTHER_FIELDS_MAX_BYTES = 1_024

/** Every setting of the gateway, with name, bounds and default. */
export const SettingsSchema = Type.Object({
  GATEWAY_PORT: integer(8080, 0, 65_535, 'Port of the public API; 0 takes a free one.'),
  GATEWAY_HOST: Type.String({ default: '::', minLength: 1, description: 'Address to listen on; all by default.' }),
  CORE_URLS: Type.String({ default: 'http://localhost:8090', description: CORE_URLS_DESCRIPTION }),
  CORE_CA: Type.String({
    default: '',
    description: 'File with the authorities (PEM) of the cores’ certificates; default: those of Node.',
  }),
  CLIENT_CERT: Type.String({
    default: '',
    description: 'File with the client certificate (PEM) for cores that require one. Reloaded when it changes.',
  }),
  CLIENT_KEY: Type.String({ default: '', description: 'File with the key of the client certificate (PEM).' }),
  CORE_TOKEN: Type.Optional(
    Type.String({ minLength: 16, description: 'Service token for the cores; default: from DATA_DIR/secrets.json.' }),
  ),
  DATA_DIR: Type.String({ default: '.data', description: 'Folder that the parts on one machine share.' }),
  TRUST_PROXY: Type.String({
    default: 'off',
    description: 'Proxies whose X-Forwarded-For is trusted: off, a number of hops, or addresses and ranges (commas).',
  }),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info', description: 'Least severe level that is logged.' },
  ),
  ...metricsSettings,

  API_DOCS: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description: 'Whether `/docs` describes the API and lets readers try it.',
  }),

  CONSOLE: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description: 'Whether `/console` is served, and `/rpc`, through which it calls the cores.',
  }),

  RATE_LIMIT_FACTOR: Type.Number({ default: 1, exclusiveMinimum: 0, description: 'Multiplies every rate limit.' }),
  RATE_LIMIT_CONFIG_PER_MINUTE: integer(240, 1, 1e6, 'Requests of the configuration, per client address.'),
  RATE_LIMIT_SESSIONS_PER_MINUTE: integer(60, 1, 1e6, 'New sessions, per client address.'),
  RATE_LIMIT_REFUSALS_PER_MINUTE: integer(
    120,
    1,
    1e6,
    'Requests refused for their origin, grant or site key, per client address; further ones cause no call to a core.',
  ),
  RATE_LIMIT_SENDS_PER_MINUTE: integer(30, 1, 1e6, 'Sends per session.'),
  RATE_LIMIT_SENDS_BURST: integer(10, 1, 1e6, 'Sends that a session may make at once.'),
  RATE_LIMIT_CALLS_PER_MINUTE: integer(120, 1, 1e6, 'Other calls per session.'),
  RATE_LIMIT_LEADS_PER_MINUTE: integer(600, 1, 1e6, 'Calls of the lead delivery routes, per client address.'),
  RATE_LIMIT_RPC_PER_MINUTE: integer(1_200, 1, 1e6, 'Calls of the console to the cores, per client address.'),
  RATE_LIMIT_REDIS_URL: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Redis (`redis:` or `rediss:`) for limits shared by several gateways; default: each gateway counts alone.',
    }),
  ),
  RATE_LIMIT_KEYS_MAX: integer(100_000, 100, 1e7, 'Addresses or sessions that one limit remembers.'),

  BODY_LIMIT_BYTES: integer(65_536, 1024, 1e7, 'Largest JSON body.'),
  MESSAGE_BODY_MAX_LENGTH: integer(
    4_000,
    1,
    100_000,
    'Longest message, in code points; the cores have the same setting.',
  ),
  PAGE_CONTEXT_SENT_MAX_BYTES: integer(
    16_384,
    256,
    1e6,
    'Largest page context in a request; the cores store less of it.',
  ),
  HISTORY_PAGE_MAX: integer(100, 1, 1_000, 'Most messages in a page of history; the cores have the same setting.'),
  SCREENSHOT_MAX_BYTES: integer(5_242_880, 1024, 1e8, 'Largest screenshot; the cores have the same setting.'),
  HEADERS_MAX_BYTES: integer(16_384, 2048, 1e6, 'Largest request line and headers together.'),
  HEADERS_TIMEOUT_MS: integer(10_000, 1000, 600_000, 'Time for the headers of a request to arrive.'),
  REQUEST_TIMEOUT_MS: integer(
    30_000,
    1000,
    600_000,
    'Time for a whole request to arrive; also caps the time for its headers.',
  ),
  CONNECTIONS_PER_ADDRESS: integer(
    500,
    1,
    1e6,
    'Open connections per client address, times RATE_LIMIT_FACTOR. Not enforced behind trusted proxies.',
  ),

  CORE_DEADLINE_MS: integer(10_000, 100, 120_000, 'Timeout of one call to a core, and of a send in the queue.'),
  CORE_CALLS_MAX: integer(1_000, 1, 1e6, 'Concurrent calls to the cores, without sends; above it 503.'),
  ORIGIN_FRESH_MS: integer(
    5_000,
    0,
    600_000,
    'How long the check of an origin is cached; a refusal for one second at most.',
  ),
  ORIGINS_MAX: integer(10_000, 10, 1e6, 'Cached origins.'),
  GRANTS_MAX: integer(50_000, 10, 1e6, 'Cached authorised grants.'),
  GRANT_FRESH_MS: integer(5_000, 0, 60_000, 'How long an authorised grant is cached.'),
  GRANT_RECHECK_MS: integer(
    1_000,
    0,
    60_000,
    'Age from which a cached authorisation is checked again before a request is refused.',
  ),

  SEND_RPCS_MAX: integer(2, 1, 64, 'Concurrent batches of sends to the cores.'),
  SEND_QUEUE_MAX: integer(10_000, 1, 1e6, 'Queued sends; above it 503.'),

  HEARTBEAT_SECONDS: integer(15, 1, 300, 'Time between two heartbeats of a stream.'),
  STREAM_MAX_AGE_SECONDS: integer(1_800, 2, 86_400, 'Maximum age of a stream, minus up to 20 % at random.'),
  STREAM_UNSENT_MAX_BYTES: integer(262_144, 16_384, 1e8, 'Unsent data above which a slow reader is disconnected.'),
  STREAMS_PER_SESSION: integer(6, 1, 100, 'Streams of one session; one more closes the oldest.'),
  STREAM_ORPHAN_SECONDS: integer(30, 1, 600, 'How long an open stream survives the loss of every core.'),
  RECONNECT_HINT_MS: integer(2_000, 100, 60_000, 'The `retry` of a stream, ± 25 % at random.'),
})

type Settings = Static<typeof SettingsSchema>

/** Proxies whose `X-Forwarded-For` is trusted: none, a number of hops, or address ranges. */
export type TrustProxy = false | number | string[]

/** The validated settings of the gateway. Tests build it with `readConfig`. */
export type Config = Readonly<
  Omit<Settings, 'CORE_URLS' | 'CORE_TOKEN' | 'TRUST_PROXY'> & {
    CORE_URLS: string[]
    CORE_TOKEN: string
    TRUST_PROXY: TrustProxy
  }
>

/**
 * A setting is missing or invalid. The message names the setting and its bounds, never its value.
 */
export class SettingError extends Error {
  constructor(problems: string[]) {
    super(problems.join('\n'))
    this.name = 'SettingError'
  }
}

/** The service token is missing. A core that starts at the same time may still create it. */
export class MissingTokenError extends SettingError {}

/**
 * Validates settings. Reads neither files nor the environment of the process.
 *
 * @param env the environment; an empty value counts as unset
 * @param secrets the content of DATA_DIR/secrets.json
 * @throws SettingError
 */
export function readConfig(env: NodeJS.ProcessEnv, secrets: { gatewayToken?: string } = {}): Config {
  const settings = readSettings(env)
  const token = settings.CORE_TOKEN ?? secrets.gatewayToken
  if (!token) {
    throw new MissingTokenError([
      'CORE_TOKEN is missing: set it to the service token that the cores know, or let DATA_DIR/secrets.json hold one as "gatewayToken"',
    ])
  }
  requireBodyLimit(settings)
  return {
    ...settings,
    CORE_URLS: readCoreUrls(settings.CORE_URLS),
    CORE_TOKEN: token,
    TRUST_PROXY: readTrustProxy(settings.TRUST_PROXY),
    ...readRedisUrl(settings.RATE_LIMIT_REDIS_URL),
  }
}

/** Reads the settings of this process from its environment and the shared data folder. */
export function loadConfig(): Config {
  const { DATA_DIR } = readSettings(process.env)
  return readConfig(process.env, readSecrets(join(DATA_DIR, 'secrets.json')))
}

function readSettings(env: NodeJS.ProcessEnv): Settings {
  const data = Object.fromEntries(
    Object.entries(env).filter(([name, value]) => name in SettingsSchema.properties && value),
  )
  try {
    return envSchema<Settings>({ schema: SettingsSchema, data, env: false })
  } catch (error) {
    const errors = (error as { errors?: { instancePath: string; message: string; params: object }[] }).errors
    if (errors === undefined) throw error
    throw new SettingError(
      [...new Set(errors.map(({ instancePath }) => instancePath.slice(1)))].map(
        (name) => `${name} ${describeBounds(name)}`,
      ),
    )
  }
}

function describeBounds(name: string): string {
  const schema: object = SettingsSchema.properties[name as keyof Settings]
  const { type, minimum, maximum, exclusiveMinimum, minLength, anyOf } = schema as Record<string, unknown>
  if (Array.isArray(anyOf)) return `must be one of ${anyOf.map((option) => option.const).join(', ')}`
  if (type === 'integer') return `must be a whole number from ${minimum} to ${maximum}`
  if (type === 'number') return `must be a number above ${exclusiveMinimum}`
  return `must have at least ${minLength} characters`
}

/** The body limit must hold the largest message that the other settings allow. */
function requireBodyLimit({ BODY_LIMIT_BYTES, MESSAGE_BODY_MAX_LENGTH, PAGE_CONTEXT_SENT_MAX_BYTES }: Settings): void {
  const needed = MESSAGE_BODY_MAX_LENGTH * CODE_POINT_MAX_BYTES + PAGE_CONTEXT_SENT_MAX_BYTES + OTHER_FIELDS_MAX_BYTES
  if (BODY_LIMIT_BYTES >= needed) return
  throw new SettingError([
    `BODY_LIMIT_BYTES must be at least ${needed}, to hold what MESSAGE_BODY_MAX_LENGTH and PAGE_CONTEXT_SENT_MAX_BYTES allow`,
  ])
}

function readCoreUrls(list: string): string[] {
  const urls = parseCoreUrls(list)
  if (urls === undefined) throw new SettingError([`CORE_URLS ${CORE_URLS_RULE}`])
  return urls
}

function readRedisUrl(url: string | undefined): { RATE_LIMIT_REDIS_URL?: string } {
  if (url === undefined) return {}
  if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol) || new URL(url).hostname === '') {
    throw new SettingError(['RATE_LIMIT_REDIS_URL must be a redis or rediss URL with a host'])
  }
  return { RATE_LIMIT_REDIS_URL: url }
}

function readTrustProxy(text: string): TrustProxy {
  if (text === 'off') return false
  if (/^[1-9]\d?$/.test(text)) return Number(text)
  const ranges = text.split(',').map((range) => range.trim())
  if (!ranges.every(isRange)) {
    throw new SettingError([
      'TRUST_PROXY must be off, a number of hops from 1 to 99, or addresses and CIDR ranges (loopback, linklocal and uniquelocal too), separated by commas',
    ])
  }
  return ranges
}

function isRange(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

function readSecrets(file: string): { gatewayToken?: string } {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new SettingError([`DATA_DIR/secrets.json cannot be read (${(error as NodeJS.ErrnoException).code})`])
  }
  try {
    const { gatewayToken } = JSON.parse(text)
    return typeof gatewayToken === 'string' ? { gatewayToken } : {}
  } catch {
    // The error of JSON.parse quotes the text, which contains secrets.
    throw new SettingError(['DATA_DIR/secrets.json must be a JSON object'])
  }
}
