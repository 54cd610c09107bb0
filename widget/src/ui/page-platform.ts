import type { Platform } from '../platform.ts'
import { pageLifecycle } from './page-lifecycle.ts'
import { createPageTabs } from './page-tabs.ts'

/** The page's part of the platform. Empty without a page. */
export function pagePlatform(apiBaseUrl: string): Partial<Platform> {
  return typeof document === 'undefined' ? {} : { lifecycle: pageLifecycle, tabs: createPageTabs(apiBaseUrl) }
}
