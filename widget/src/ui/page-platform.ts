import type { Platform } from '../platform.ts'
import { pageLifecycle } from './page-lifecycle.ts'
import { pageTabs } from './page-tabs.ts'

/** What the page brings; nothing where there is no page. */
export function pagePlatform(): Partial<Platform> {
  return typeof document === 'undefined' ? {} : { lifecycle: pageLifecycle, tabs: pageTabs }
}
