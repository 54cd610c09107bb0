import { createLauncherHost, type LauncherHost } from './launcher/launcher-host.ts'
import { type LoadPart, packageParts } from './parts.ts'
import { createWidget as create, type ServiceWidget, type ServiceWidgetOptions } from './widget.ts'

export { logRefusal, readableRefusal } from './panel/refusals.ts'

export const loadPackagePart = ((name: keyof typeof packageParts) =>
  packageParts[name]?.() ?? import(`./languages/${name}.json`)) as LoadPart

/** Creates the chat of the npm package. */
export const createWidget = (options: ServiceWidgetOptions, hostOf: () => LauncherHost): ServiceWidget =>
  create(options, hostOf, loadPackagePart)

/**
 * Creates the chat with its user interface (section 4.4 of the specification). Before `mount`, the
 * chat accesses neither the page nor its storage.
 *
 * @throws WidgetError `site_key_missing`, `site_key_invalid`, `api_base_url_missing` or
 * `api_base_url_invalid`
 */
export function createServiceWidget(options: ServiceWidgetOptions): ServiceWidget {
  let host: LauncherHost | undefined
  return createWidget(options, () => {
    if (!host) {
      host = createLauncherHost(options)
      host.setAppearance(undefined)
    }
    return host
  })
}
