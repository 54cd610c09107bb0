import { createServiceClient as createClient, type ServiceClient, type ServiceClientOptions } from './client.ts'
import { pagePlatform } from './ui/page-platform.ts'

export { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from './api.ts'
export { type ClientErrorCode, WidgetError } from './errors.ts'
export type { Emitter, Handler } from './events.ts'
export type { Clock, Lifecycle, LifecycleSignal, Platform, TabSlot, Tabs } from './platform.ts'
export type { KeyValueStorage, StorageMode } from './storage.ts'
export type * from './types.ts'
export type { ServiceClient, ServiceClientOptions }

/**
 * The chat without a user interface: `@service/widget/client`. In a page it follows the page's life, and its tabs share
 * connections; elsewhere, as in Node, the network is taken as always there. Nothing is touched at import.
 */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const platform = { ...pagePlatform(options.apiBaseUrl), ...options.platform }
  return createClient({ ...options, platform }, () => import('./features.ts'))
}
