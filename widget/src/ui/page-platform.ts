import type { Platform } from '../platform.ts'
import { pageLifecycle } from './page-lifecycle.ts'
import { createPageTabs } from './page-tabs.ts'

/** What the page brings; nothing where there is no page. */
export function pagePlatform(apiBaseUrl: string): Partial<Platform> {
  return typeof document === 'undefined' ? {} : { lifecycle: pageLifecycle, tabs: createPageTabs(apiBaseUrl) }
}
