import { join } from 'node:path'
import { corePoolSettings, parseCoreUrls } from '../core-client/core-settings.ts'
import { parseAllowedCidrs } from '../platform/addresses/addresses.ts'
import { readTokenFile } from '../platform/settings/data-file.ts'
import { missingToken, processSettings } from '../platform/settings/process-settings.ts'
import { defineSettings, filledText, integer, port, text, token } from '../platform/settings/settings.ts'
import texts from './settings.json' with { type: 'json' }

/** Every setting of the delivery worker, with name, bounds and default. */
export const deliverySettings = defineSettings(
  {
    ...corePoolSettings,
    DELIVERY_TOKEN: token(),
    DATA_DIR: filledText('.data'),
    DELIVERY_ALLOWED_CIDRS: text(),
    DELIVERY_CONCURRENCY: integer(500, 1, 10_000),
    DELIVERY_PER_DESTINATION: integer(10, 1, 1_000),
    DELIVERY_GRACE_MS: integer(11_000, 0, 310_000),
    DELIVERY_HOST: filledText('::'),
    DELIVERY_PORT: port(0),
    ...processSettings,
  },
  texts,
)

export type DeliveryConfig = Readonly<ReturnType<typeof readDeliveryConfig>>

/**
 * Reads neither files nor the environment of the process. `fileToken` is the content of
 * DATA_DIR/delivery.token. Throws `SettingError`.
 */
export function readDeliveryConfig(env: NodeJS.ProcessEnv, fileToken = '') {
  const settings = deliverySettings.read(env)
  const config = {
    ...settings,
    CORE_URLS: parseCoreUrls(settings.CORE_URLS),
    DELIVERY_TOKEN: settings.DELIVERY_TOKEN ?? fileToken.trim(),
    /** Whether an address is public, or in `DELIVERY_ALLOWED_CIDRS`. */
    isAddressAllowed: parseAllowedCidrs(settings.DELIVERY_ALLOWED_CIDRS),
  }
  if (config.DELIVERY_TOKEN) return config
  throw missingToken(
    env,
    'DELIVERY_TOKEN is missing: set it to a service token with the scope deliveries:work, or let DATA_DIR/delivery.token hold one',
  )
}

export function loadDeliveryConfig(env: NodeJS.ProcessEnv = process.env): DeliveryConfig {
  return readDeliveryConfig(env, readTokenFile(join(deliverySettings.read(env).DATA_DIR, 'delivery.token')))
}
