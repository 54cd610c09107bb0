import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { beforeAll, expect, onTestFinished } from 'vitest'
import { sharedChromium } from '../../test/support/chromium.ts'
import { atFileEnd } from '../../test/support/clean-up.ts'
import { isLong } from '../../test/support/is-long.ts'
import { latest } from '../../test/support/latest.ts'
import { accessibilityTags } from '../../test/support/page-checks.ts'
import { buildConsoleIfStale } from '../build.ts'
import { addDemoData } from './demo-data.ts'
import { type FakeCore, startFakeCore, workspaceSession } from './fake-core.ts'
import { cookieName } from './fake-session.ts'

interface PageOptions extends BrowserContextOptions {
  /** The session of the page. Null opens the page without one. */
  token?: string | null
}

/**
 * Starts a browser for console tests. Call it at the top level of a test file.
 *
 * @param startBefore `beforeEach` or `beforeAll` if the tests need a `core` with demo data
 */
export function consoleBrowser(startBefore?: (start: () => Promise<void>) => void) {
  let browser: Browser
  let demoCore: FakeCore
  const cores: FakeCore[] = []
  beforeAll(async () => {
    atFileEnd(() => Promise.all(cores.map((core) => core.close())))
    const [started] = await Promise.all([sharedChromium(), buildConsoleIfStale()])
    browser = started
  })

  async function newCore(): Promise<FakeCore> {
    const core = await startFakeCore()
    cores.push(core)
    return core
  }

  async function newDemoCore() {
    const core = await newCore()
    await addDemoData(core)
    return core
  }
  startBefore?.(async () => {
    demoCore = await newDemoCore()
  })

  return {
    newCore,
    newDemoCore,

    /** The core that `startBefore` has started. */
    core: latest(() => demoCore),

    /**
     * Opens a page with a signed-in operator and closes it at the end of the test. The test fails if
     * the page reports an error, a warning or a violation of the content security policy.
     */
    async open(core: FakeCore, path: string, { token = workspaceSession(), ...look }: PageOptions = {}): Promise<Page> {
      const context = await browser.newContext({
        reducedMotion: 'reduce',
        viewport: { width: 1440, height: 900 },
        ...look,
      })
      const page = await context.newPage()
      page.setDefaultTimeout(90_000)
      const complaints: string[] = []
      onTestFinished(async () => {
        await context.close()
        expect(complaints).toEqual([])
      })
      page.on('pageerror', (error) => complaints.push(String(error)))
      page.on('console', (message) => {
        const failedLoad = /Failed to load resource/.test(message.text())
        if (['error', 'warning'].includes(message.type()) && !failedLoad) complaints.push(message.text())
      })
      if (token !== null)
        await context.addCookies([
          { name: cookieName(core.url), value: token, url: core.url, httpOnly: true, sameSite: 'Strict' },
        ])
      await page.goto(`${core.url}/console/${path}`)
      return page
    },
  }
}

/**
 * Returns the accessibility violations of a page within a journey. axe takes a second of processor
 * time, so only `npm run test:long` checks journeys. `npm test` checks the views of views.test.ts.
 */
export const accessibilityFindings = async (page: Page) => (isLong ? violationsIn(page) : [])

/** Returns the violations that axe finds on the page. Without `rules`, checks all rules. */
export async function violationsIn(page: Page, rules?: string[]): Promise<string[]> {
  // The tests do not use the selectors of axe, and computing them takes time.
  const axe = new AxeBuilder({ page }).options({ resultTypes: ['violations'], selectors: false, elementRef: false })
  // Legacy mode skips frames, so axe needs no second page to merge results.
  axe.setLegacyMode()
  const { violations } = await (rules ? axe.withRules(rules) : axe.withTags(accessibilityTags)).analyze()
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}
