import type { Platform } from '../platform.ts'
import { pageLifecycle } from './page-lifecycle.ts'
import { pageTabs } from './page-tabs.ts'

/** What the page itself brings. Touches nothing before it is used, so it can be imported anywhere. */
export const pagePlatform: Pick<Platform, 'lifecycle' | 'tabs'> = { lifecycle: pageLifecycle, tabs: pageTabs }
