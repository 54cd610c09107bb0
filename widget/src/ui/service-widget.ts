import { createLauncherHost, type LauncherHost } from './launcher/launcher-host.ts'
import { createWidget } from './package-widget.ts'
import type { ServiceWidgetOptions } from './service-widget-types.ts'
import type { ServiceWidget } from './widget.ts'

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
