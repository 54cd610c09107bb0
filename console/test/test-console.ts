import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { beforeAll } from 'vitest'
import { sharedChromium } from '../../test/support/chromium.ts'
import { atFileEnd } from '../../test/support/clean-up.ts'
import { accessibilityTags } from '../../test/support/page-checks.ts'
import { buildConsoleIfStale } from '../build.ts'
import { addDemoData } from './demo-data.ts'
import { type FakeCore, startFakeCore, workspaceSession } from './fake-core.ts'
import { cookieName } from './fake-session.ts'

/** Starts a browser for console tests. Call it at the top level of a test file. */
export function consoleBrowser() {
  let browser: Browser
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

  return {
    newCore,

    async newDemoCore() {
      const core = await newCore()
      await addDemoData(core)
      return core
    },

    /**
     * Opens a page with a signed-in operator, unless `token` is null. `complaints` collects errors,
     * warnings and violations of the content security policy.
     */
    async open(
      core: FakeCore,
      path: string,
      { token = workspaceSession(), ...look }: BrowserContextOptions & { token?: string | null } = {},
    ) {
      const context = await browser.newContext({
        reducedMotion: 'reduce',
        viewport: { width: 1440, height: 900 },
        ...look,
      })
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      const complaints: string[] = []
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
      return { page, complaints, close: () => context.close() }
    },
  }
}

/**
 * Returns the accessibility violations that axe finds on the page. Without `rules`, checks all
 * rules.
 */
export async function accessibilityFindings(page: Page, rules?: string[]): Promise<string[]> {
  // The tests do not use the selectors of axe, and computing them takes time.
  const axe = new AxeBuilder({ page }).options({ resultTypes: ['violations'], selectors: false, elementRef: false })
  // Legacy mode skips frames, so axe needs no second page to merge results.
  axe.setLegacyMode()
  const { violations } = await (rules ? axe.withRules(rules) : axe.withTags(accessibilityTags)).analyze()
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}
