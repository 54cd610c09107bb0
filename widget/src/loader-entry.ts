import { checkOptions } from './client/client-options.ts'
import { createLauncher, type ServiceWidgetLoader } from './ui/launcher/launcher.ts'
import type { ServiceWidget, ServiceWidgetOptions } from './ui/widget.ts'

export type { ServiceWidget, ServiceWidgetLoader, ServiceWidgetOptions }

/**
 * Shows the launcher of the chat, like the script tag: loads the chat when the visitor opens it, or
 * if the tab has a session. Before that, the page sends one request, for the configuration. Call it
 * in a browser only.
 *
 * @param onReady called with the widget when the chat is loaded, and again after `configure`
 * created it again
 * @throws WidgetError `site_key_missing`, `site_key_invalid`, `api_base_url_missing` or
 * `api_base_url_invalid`
 */
export function createServiceWidgetLoader(
  options: ServiceWidgetOptions,
  onReady: (widget: ServiceWidget) => void = () => {},
): ServiceWidgetLoader {
  checkOptions(options)
  return createLauncher({
    options: { storage: 'session', ...options },
    importChat: () => import('./ui/service-widget.ts'),
    onReady,
  })
}
