import type { LauncherHost } from './launcher/launcher-host.ts'
import type { LoadPart } from './parts.ts'
import type { ServiceWidget, ServiceWidgetOptions } from './service-widget-types.ts'
import { createWidget as create } from './widget.ts'

export { logRefusal, readableRefusal } from './panel/readable-refusal.ts'

/** In the npm package, the host's bundler puts each part into a file of its own. */
export const parts = {
  requests: () => import('./requests/request-card.ts'),
  forms: () => import('./forms/late-forms.ts'),
  de: () => import('./languages/de.ts'),
  es: () => import('./languages/es.ts'),
  fr: () => import('./languages/fr.ts'),
  ar: () => import('./languages/ar.ts'),
  ja: () => import('./languages/ja.ts'),
}

export const loadPackagePart = ((name) => parts[name]()) as LoadPart

/** Creates the chat of the npm package. */
export const createWidget = (options: ServiceWidgetOptions, hostOf: () => LauncherHost): ServiceWidget =>
  create(options, hostOf, loadPackagePart)
