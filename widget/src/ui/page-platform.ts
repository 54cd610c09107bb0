import { pageLifecycle } from '../../../browser/page-lifecycle.ts'
import { createPageTabs } from '../../../browser/page-tabs.ts'
import type { Platform } from '../../../browser/platform.ts'

/**
 * Returns the parts of the platform that only a page can provide. Outside of a browser, returns an
 * empty object.
 */
export function pagePlatform(apiBaseUrl: string): Partial<Platform> {
  return typeof document === 'undefined' ? {} : { lifecycle: pageLifecycle, tabs: createPageTabs(apiBaseUrl) }
}
