import type { LauncherHost } from './launcher/launcher-host.ts'
import { parts } from './package-parts.ts'
import type { LoadPart } from './parts.ts'
import type { ServiceWidget, ServiceWidgetOptions } from './service-widget-types.ts'
import { createWidget as create } from './widget.ts'

export { logRefusal, readableRefusal } from './panel/readable-refusal.ts'

export const loadPackagePart = ((name) => parts[name]()) as LoadPart

/** Creates the chat of the npm package. */
export const createWidget = (options: ServiceWidgetOptions, hostOf: () => LauncherHost): ServiceWidget =>
  create(options, hostOf, loadPackagePart)
