import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import envSchema from 'env-schema'
import { type Static, Type } from 'typebox'
import { CORE_URLS_DESCRIPTION, CORE_URLS_RULE, parseCoreUrls } from '../core-client/core-urls.ts'
import { type AddressCheck, CidrError, createAddressCheck } from '../platform/addresses/addresses.ts'
import { metricsSettings } from '../platform/observability/config.ts'

const integer = (fallback: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description })

/** Every setting of the delivery worker, with name, bounds and default. */
export const DeliverySettings = Type.Object({
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
  DELIVERY_TOKEN: Type.Optional(
    Type.String({ minLength: 16, description: 'Service token for the cores; default: from DATA_DIR/delivery.token.' }),
  ),
  DATA_DIR: Type.String({ default: '.data', description: 'Folder that the parts on one machine share.' }),
  DELIVERY_ALLOWED_CIDRS: Type.String({
    default: '',
    description:
      'Address ranges that are allowed for destinations besides public ones (commas); the cores have the same setting.',
  }),
  DELIVERY_CONCURRENCY: integer(500, 1, 10_000, 'Concurrent attempts of a worker.'),
  DELIVERY_PER_DESTINATION: integer(10, 1, 1_000, 'Concurrent attempts of a worker per destination.'),
  DELIVERY_RESPONSE_MAX_BYTES: integer(65_536, 0, 1e7, 'Most bytes to read of an answer.'),
  DELIVERY_IDLE_CONNECTIONS: integer(256, 0, 10_000, 'Idle connections that are kept open.'),
  DELIVERY_CLAIM_WAIT_MS: integer(20_000, 0, 30_000, 'How long a claim waits for deliveries.'),
  DELIVERY_GRACE_MS: integer(
    11_000,
    0,
    310_000,
    'Time for running attempts when the worker stops. Set it above `DELIVERY_ATTEMPT_DEADLINE_MS` of the cores, and the stop timeout of the process manager 5 s above it.',
  ),
  DELIVERY_HOST: Type.String({
    default: '::',
    minLength: 1,
    description: 'Address of the health port; all by default.',
  }),
  DELIVERY_PORT: integer(0, 0, 65_535, 'Port of `/livez` and `/readyz`; 0 for none.'),
  CORE_DEADLINE_MS: integer(10_000, 100, 120_000, 'Timeout of one call to a core, without the wait of a claim.'),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info', description: 'Least severe level that is logged.' },
  ),
  ...metricsSettings,
})

type Settings = Static<typeof DeliverySettings>

/** The validated settings of the worker. Tests build it with `readDeliveryConfig`. */
export type DeliveryConfig = Readonly<
  Omit<Settings, 'CORE_URLS' | 'DELIVERY_TOKEN' | 'DELIVERY_ALLOWED_CIDRS'> & {
    CORE_URLS: string[]
    DELIVERY_TOKEN: string
    /** Derived from `DELIVERY_ALLOWED_CIDRS`. */
    isAddressAllowed: AddressCheck
  }
>

/**
 * A setting is missing or invalid. The message names the setting and its bounds, never a secret
 * value.
 */
export class SettingError extends Error {
  override readonly name: string = 'SettingError'
}

/** The service token is missing. A core that starts at the same time may still create it. */
export class MissingTokenError extends SettingError {
  override readonly name = 'MissingTokenError'
}

/**
 * Validates settings. Reads neither files nor the environment of the process.
 *
 * @param env the environment; an empty value counts as unset
 * @param token the content of DATA_DIR/delivery.token
 * @throws SettingError
 */
export function readDeliveryConfig(env: NodeJS.ProcessEnv, token?: string): DeliveryConfig {
  const settings = readSettings(env)
  const DELIVERY_TOKEN = settings.DELIVERY_TOKEN ?? token?.trim()
  const config = {
    ...settings,
    CORE_URLS: readCoreUrls(settings.CORE_URLS),
    isAddressAllowed: readAllowedAddresses(settings.DELIVERY_ALLOWED_CIDRS),
  }
  if (!DELIVERY_TOKEN) {
    throw new MissingTokenError(
      'DELIVERY_TOKEN is missing: set it to a service token with the scope deliveries:work, or let DATA_DIR/delivery.token hold one',
    )
  }
  return { ...config, DELIVERY_TOKEN }
}

/** Reads the settings of this process from its environment and the shared data folder. */
export function loadDeliveryConfig(env: NodeJS.ProcessEnv = process.env): DeliveryConfig {
  return readDeliveryConfig(env, readToken(join(readSettings(env).DATA_DIR, 'delivery.token')))
}

function readSettings(env: NodeJS.ProcessEnv): Settings {
  const data = Object.fromEntries(
    Object.entries(env).filter(([name, value]) => name in DeliverySettings.properties && value),
  )
  try {
    return envSchema<Settings>({ schema: DeliverySettings, data, env: false })
  } catch (error) {
    const errors = (error as { errors?: { instancePath: string }[] }).errors
    if (errors === undefined) throw error
    const names = [...new Set(errors.map(({ instancePath }) => instancePath.slice(1)))]
    throw new SettingError(names.map((name) => `${name} ${describeBounds(name)}`).join('\n'))
  }
}

function describeBounds(name: string): string {
  const schema: object = DeliverySettings.properties[name as keyof Settings]
  const { type, minimum, maximum, minLength, anyOf } = schema as Record<string, unknown>
  if (Array.isArray(anyOf)) return `must be one of ${anyOf.map((option) => option.const).join(', ')}`
  if (type === 'integer') return `must be a whole number from ${minimum} to ${maximum}`
  return `must have at least ${minLength} characters`
}

function readCoreUrls(list: string): string[] {
  const urls = parseCoreUrls(list)
  if (urls === undefined) throw new SettingError(`CORE_URLS ${CORE_URLS_RULE}`)
  return urls
}

function readAllowedAddresses(list: string): AddressCheck {
  try {
    return createAddressCheck({ allowedCidrs: splitList(list) })
  } catch (error) {
    if (error instanceof CidrError) throw new SettingError(`DELIVERY_ALLOWED_CIDRS: ${error.message}`)
    throw error
  }
}

function splitList(list: string): string[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
}

function readToken(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new SettingError(`DATA_DIR/delivery.token cannot be read (${code})`)
  }
}
