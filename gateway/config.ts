import { isIP } from 'node:net'
import { join } from 'node:path'
import { Type } from 'typebox'
import { contractLimits } from '../contract/limits.ts'
import { corePoolSettings, parseCoreUrls } from '../core-client/core-settings.ts'
import { readJsonFile, secretsRemedy } from '../platform/settings/data-file.ts'
import { missingToken, processSettings } from '../platform/settings/process-settings.ts'
import {
  defineSettings,
  filledText,
  integer,
  onOff,
  port,
  SettingError,
  splitList,
  text,
  token,
} from '../platform/settings/settings.ts'

const CODE_POINT_MAX_BYTES = 4
const OTHER_FIELDS_MAX_BYTES = 1_024
/** Bytes of a body with the longest message and the largest page context. */
const BODY_MIN_BYTES =
  contractLimits.bodyMaxLength * CODE_POINT_MAX_BYTES + contractLimits.pageContextSentMaxBytes + OTHER_FIELDS_MAX_BYTES

export const gatewaySettings = defineSettings({
  GATEWAY_PORT: port(8080, 'Port of the public API; 0 takes a free one.'),
  GATEWAY_HOST: filledText('::', 'Address to listen on; all by default.'),
  ...corePoolSettings,
  CORE_TOKEN: token('Service token for the cores; default: from DATA_DIR/secrets.json.'),
  CORE_CALLS_MAX: integer(1_000, 1, 1e6, 'Concurrent calls to the cores, without sends; above it 503.'),
  DATA_DIR: filledText('.data', 'Folder that the parts on one machine share.'),
  TRUST_PROXY: filledText(
    'off',
    'Proxies whose X-Forwarded-For is trusted: off, a number of hops, or addresses and ranges (commas).',
  ),
  ...processSettings,
  API_DOCS: onOff('Whether `/docs` describes the API and lets readers try it.'),
  CONSOLE: onOff('Whether `/console` is served, and `/rpc`, through which it and bots elsewhere call the cores.'),

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
  RATE_LIMIT_BOTS_PER_MINUTE: integer(12_000, 1, 1e6, 'Calls of bots through `/rpc`, per client address.'),
  RATE_LIMIT_REDIS_URL: text(
    'Redis (`redis:` or `rediss:`) for limits shared by several gateways; default: each gateway counts alone.',
  ),

  BODY_LIMIT_BYTES: integer(65_536, BODY_MIN_BYTES, 1e7, 'Largest JSON body.'),
  REQUEST_TIMEOUT_MS: integer(
    30_000,
    1000,
    600_000,
    'Time for a whole request to arrive; its headers have 10 s at most.',
  ),
  CONNECTIONS_PER_ADDRESS: integer(
    500,
    1,
    1e6,
    'Open connections per client address, times RATE_LIMIT_FACTOR. Not enforced behind trusted proxies.',
  ),
  SEND_QUEUE_MAX: integer(10_000, 1, 1e6, 'Queued sends; above it 503.'),
  HEARTBEAT_SECONDS: integer(15, 1, 300, 'Time between two heartbeats of a stream. Browsers get it too.'),
  STREAM_MAX_AGE_SECONDS: integer(1_800, 2, 86_400, 'Maximum age of a stream, minus up to 20 % at random.'),
  STREAMS_PER_SESSION: integer(6, 1, 100, 'Streams of one session; one more closes the oldest.'),
})

type Settings = ReturnType<typeof gatewaySettings.read>

type TrustProxy = false | number | string[]

/** Validated settings of the gateway. Tests create them with `readConfig`. */
export type Config = Readonly<
  Omit<Settings, 'CORE_URLS' | 'CORE_TOKEN' | 'TRUST_PROXY'> & {
    CORE_URLS: string[]
    CORE_TOKEN: string
    TRUST_PROXY: TrustProxy
  }
>

/**
 * Validates settings: an empty value counts as unset. Throws `SettingError`. Reads neither files nor the
 * environment of the process. `secrets` is the content of DATA_DIR/secrets.json.
 */
export function readConfig(env: NodeJS.ProcessEnv, secrets?: { gatewayToken?: string }): Config {
  const settings = gatewaySettings.read(env)
  const CORE_TOKEN = settings.CORE_TOKEN ?? secrets?.gatewayToken
  if (!CORE_TOKEN && secrets) throw new SettingError(`secrets.json in DATA_DIR lacks "gatewayToken": ${secretsRemedy}`)
  if (!CORE_TOKEN) {
    throw missingToken(
      env,
      'CORE_TOKEN is missing: set it to the service token that the cores know, or let DATA_DIR/secrets.json hold one as "gatewayToken"',
    )
  }
  requireRedisUrl(settings.RATE_LIMIT_REDIS_URL)
  return {
    ...settings,
    CORE_URLS: parseCoreUrls(settings.CORE_URLS),
    CORE_TOKEN,
    TRUST_PROXY: readTrustProxy(settings.TRUST_PROXY),
  }
}

export function loadConfig(): Config {
  const { DATA_DIR } = gatewaySettings.read(process.env)
  return readConfig(process.env, readJsonFile(join(DATA_DIR, 'secrets.json'), secretsRemedy))
}

function requireRedisUrl(url: string) {
  if (url === '') return
  if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol) || new URL(url).hostname === '')
    throw new SettingError('RATE_LIMIT_REDIS_URL must be a redis or rediss URL with a host')
}

function readTrustProxy(list: string): TrustProxy {
  if (list === 'off') return false
  if (/^[1-9]\d?$/.test(list)) return Number(list)
  const ranges = splitList(list)
  if (ranges.some((range) => /\/0+$/.test(range)))
    throw new SettingError('TRUST_PROXY must not have a range of all addresses: every visitor could choose an address')
  if (ranges.length > 0 && ranges.every(isRange)) return ranges
  throw new SettingError(
    'TRUST_PROXY must be off, a number of hops from 1 to 99, or addresses and CIDR ranges (loopback, linklocal and uniquelocal too), separated by commas',
  )
}

function isRange(text: string) {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}
