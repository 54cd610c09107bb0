import type { LauncherHost } from './launcher-host.ts'
import type { LoadPart, Parts } from './parts.ts'
import type { ServiceWidget, ServiceWidgetOptions } from './service-widget-types.ts'
import { createWidget } from './widget.ts'

/** In the npm package, the host's bundler puts each part into a file of its own. */
const parts: { [Name in keyof Parts]: () => Promise<Parts[Name]> } = {
  requests: () => import('./request-card.ts'),
  de: () => import('./locales/de.ts'),
  es: () => import('./locales/es.ts'),
  fr: () => import('./locales/fr.ts'),
  ar: () => import('./locales/ar.ts'),
  ja: () => import('./locales/ja.ts'),
}

export const loadPackagePart: LoadPart = (name) => parts[name]()

/** Creates the chat of the npm package. */
export const createPackageWidget = (options: ServiceWidgetOptions, hostOf: () => LauncherHost): ServiceWidget =>
  createWidget(options, hostOf, loadPackagePart)
