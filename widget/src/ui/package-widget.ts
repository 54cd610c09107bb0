import type { LauncherHost } from './launcher/launcher-host.ts'
import { type LoadPart, packageParts } from './parts.ts'
import type { ServiceWidgetOptions } from './service-widget-types.ts'
import { createWidget as create, type ServiceWidget } from './widget.ts'

export { logRefusal, readableRefusal } from './panel/refusals.ts'

export const loadPackagePart = ((name: keyof typeof packageParts) =>
  packageParts[name]?.() ?? import(`./languages/${name}.json`)) as LoadPart

/** Creates the chat of the npm package. */
export const createWidget = (options: ServiceWidgetOptions, hostOf: () => LauncherHost): ServiceWidget =>
  create(options, hostOf, loadPackagePart)
