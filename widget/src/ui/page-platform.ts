import { pageLifecycle } from '../../../browser/page-lifecycle.ts'
import { createPageTabs } from '../../../browser/page-tabs.ts'
import type { Platform } from '../../../browser/platform.ts'

/** Returns the parts that need a browser; none outside of one. */
export function pagePlatform(apiBaseUrl: string): Partial<Platform> {
  return typeof document === 'undefined' ? {} : { lifecycle: pageLifecycle, tabs: createPageTabs(apiBaseUrl) }
}
