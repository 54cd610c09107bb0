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
import texts from './settings.json' with { type: 'json' }

const CODE_POINT_MAX_BYTES = 4
const OTHER_FIELDS_MAX_BYTES = 1_024
/** Bytes of a body with the longest message and the largest page context. */
const BODY_MIN_BYTES =
  contractLimits.bodyMaxLength * CODE_POINT_MAX_BYTES + contractLimits.pageContextSentMaxBytes + OTHER_FIELDS_MAX_BYTES

export const gatewaySettings = defineSettings(
  {
    GATEWAY_PORT: port(8080),
    GATEWAY_HOST: filledText('::'),
    ...corePoolSettings,
    CORE_TOKEN: token(),
    CORE_CALLS_MAX: integer(1_000, 1, 1e6),
    DATA_DIR: filledText('.data'),
    TRUST_PROXY: filledText('off'),
    ...processSettings,
    API_DOCS: onOff(),
    CONSOLE: onOff(),

    RATE_LIMIT_FACTOR: Type.Number({ default: 1, exclusiveMinimum: 0 }),
    RATE_LIMIT_CONFIG_PER_MINUTE: integer(240, 1, 1e6),
    RATE_LIMIT_SESSIONS_PER_MINUTE: integer(60, 1, 1e6),
    RATE_LIMIT_REFUSALS_PER_MINUTE: integer(120, 1, 1e6),
    RATE_LIMIT_SENDS_PER_MINUTE: integer(30, 1, 1e6),
    RATE_LIMIT_SENDS_BURST: integer(10, 1, 1e6),
    RATE_LIMIT_CALLS_PER_MINUTE: integer(120, 1, 1e6),
    RATE_LIMIT_LEADS_PER_MINUTE: integer(600, 1, 1e6),
    RATE_LIMIT_RPC_PER_MINUTE: integer(1_200, 1, 1e6),
    RATE_LIMIT_BOTS_PER_MINUTE: integer(12_000, 1, 1e6),
    RATE_LIMIT_REDIS_URL: text(),

    BODY_LIMIT_BYTES: integer(65_536, BODY_MIN_BYTES, 1e7),
    REQUEST_TIMEOUT_MS: integer(30_000, 1000, 600_000),
    CONNECTIONS_PER_ADDRESS: integer(500, 1, 1e6),
    SEND_QUEUE_MAX: integer(10_000, 1, 1e6),
    HEARTBEAT_SECONDS: integer(15, 1, 300),
    STREAM_MAX_AGE_SECONDS: integer(1_800, 2, 86_400),
    STREAMS_PER_SESSION: integer(6, 1, 100),
  },
  texts,
)

/** Validated settings of the gateway. Tests create them with `readConfig`. */
export type Config = Readonly<ReturnType<typeof readConfig>>

/**
 * Validates settings: an empty value counts as unset. Throws `SettingError`. Reads neither files nor the
 * environment of the process. `secrets` is the content of DATA_DIR/secrets.json.
 */
export function readConfig(env: NodeJS.ProcessEnv, secrets?: { gatewayToken?: string }) {
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

function readTrustProxy(list: string): false | number | string[] {
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
