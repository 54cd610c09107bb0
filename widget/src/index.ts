export type { SupportedRequests } from './agent-requests.ts'
export { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from './api.ts'
export { createServiceClient, type ServiceClient, type ServiceClientOptions } from './client.ts'
export { type ClientErrorCode, WidgetError } from './errors.ts'
export type { Emitter, Handler } from './events.ts'
export type { Clock, Lifecycle, LifecycleSignal, Platform } from './platform.ts'
export type { KeyValueStorage, StorageMode } from './storage.ts'
export type {
  Activity,
  Agent,
  AgentRequest,
  ConnectionState,
  FieldIssue,
  FormDefinition,
  FormField,
  FormIssues,
  FormKind,
  FormState,
  MessageAuthor,
  MessageState,
  NavigationOutcome,
  PageContext,
  Presence,
  ScreenshotConsent,
  SessionEnd,
  SessionView,
  UploadedScreenshot,
  UploadTerms,
  WidgetConfig,
  WidgetErrorDetail,
  WidgetEventMap,
  WidgetEventName,
  WidgetMessage,
} from './types.ts'
export { englishTexts, type WidgetTexts } from './ui/texts.ts'
export { createServiceWidget, type ServiceWidget, type ServiceWidgetOptions } from './ui/widget.ts'
