export { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from './api.ts'
export { createServiceClient, type ServiceClient, type ServiceClientOptions } from './client.ts'
export { type ClientErrorCode, WidgetError } from './errors.ts'
export type { Emitter, Handler } from './events.ts'
export type { Clock, Lifecycle, LifecycleSignal, Platform } from './platform.ts'
export type { KeyValueStorage, StorageMode } from './storage.ts'
export type {
  ConnectionState,
  MessageAuthor,
  MessageState,
  PageContext,
  SessionEnd,
  SessionView,
  WidgetConfig,
  WidgetErrorDetail,
  WidgetEventMap,
  WidgetEventName,
  WidgetMessage,
} from './types.ts'
