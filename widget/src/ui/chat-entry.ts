import { importChecked } from './launcher/import-checked.ts'
import type { LauncherHost } from './launcher/launcher-host.ts'
import type { LoadPart } from './parts.ts'
import { createWidget as create, type ServiceWidget, type ServiceWidgetOptions } from './widget.ts'

export { logRefusal, readableRefusal } from './panel/refusals.ts'

/** Hash of each part by name. The build sets this constant. */
declare const PART_INTEGRITY: Record<string, string>

/** Creates the chat that `widget.js` loads. Its parts stand beside this file. */
export const createWidget = (options: ServiceWidgetOptions, hostOf: () => LauncherHost): ServiceWidget =>
  create(options, hostOf, ((name: string) =>
    importChecked(new URL(`${name}.js`, import.meta.url).href, PART_INTEGRITY[name]!)) as LoadPart)
