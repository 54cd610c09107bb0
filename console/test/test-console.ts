import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { launchChromium } from '../../test/support/chromium.ts'
import { buildConsoleIfStale } from '../build.ts'
import { type FakeCore, startFakeCore, workspaceSession } from './fake-core.ts'

/** A browser for console tests. Call it at the top level of a test file. */
export function consoleBrowser() {
  let browser: Browser
  const cores: FakeCore[] = []
  beforeAll(async () => {
    const [started] = await Promise.all([launchChromium(), buildConsoleIfStale()])
    browser = started
  })
  afterAll(async () => {
    await browser.close()
    await Promise.all(cores.map((core) => core.close()))
  })

  return {
    async newCore() {
      const core = await startFakeCore()
      cores.push(core)
      return core
    },

    /** Opens a page, signed in by default. `complaints` collects errors, warnings and policy violations. */
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
      await page.goto(`${core.url}/console/`)
      if (token !== null) {
        await page.evaluate(
          ([session]) => {
            sessionStorage.setItem('service.console.session', session!)
            sessionStorage.setItem('service.console.name', 'Ada')
          },
          [token],
        )
      }
      await page.goto(`${core.url}/console/${path}`)
      return { page, complaints, close: () => context.close() }
    },
  }
}

/** The accessibility violations that axe finds on the page. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    .analyze()
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}
