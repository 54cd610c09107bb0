import { pagePlatform } from '../../browser/page-tabs.ts'
import { createServiceClient as createClient, type ServiceClient } from './client/client.ts'
import { checkOptions, type ServiceClientOptions } from './client/client-options.ts'

export type { Clock, Lifecycle, LifecycleSignal, Platform, TabSlot, Tabs } from '../../browser/platform.ts'
export type { KeyValueStorage, StorageMode } from '../../browser/storage.ts'
export { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from './transport/api.ts'
export { WidgetError } from './vocabulary/errors.ts'
export type { Emitter, Handler } from './vocabulary/events.ts'
export type * from './vocabulary/types.ts'
export type { ServiceClient, ServiceClientOptions }

/**
 * Creates the chat client without a user interface, exported as `@service/widget/client`. In a
 * browser, the client follows the page's lifecycle and shares connections with other tabs. Outside
 * of a browser, the client assumes that the network is always online. Importing this module has no
 * side effects.
 *
 * @throws WidgetError `site_key_missing`, `site_key_invalid`, `api_base_url_missing` or
 * `api_base_url_invalid`
 */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  checkOptions(options)
  const platform = { ...pagePlatform(options.apiBaseUrl), ...options.platform }
  return createClient({ ...options, platform })
}
