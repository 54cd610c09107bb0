import type { Platform } from '../platform.ts'
import { pageLifecycle } from './page-lifecycle.ts'
import { createPageTabs } from './page-tabs.ts'

/**
 * Returns the parts of the platform that only a page can provide. Outside of a browser, returns an
 * empty object.
 */
export function pagePlatform(apiBaseUrl: string): Partial<Platform> {
  return typeof document === 'undefined' ? {} : { lifecycle: pageLifecycle, tabs: createPageTabs(apiBaseUrl) }
}
