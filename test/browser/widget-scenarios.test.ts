import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildWidgetIfStale } from '../../widget/build.ts'
import { createDemoSite } from '../../widget/demo/server.ts'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import type { SiteKey } from '../../widget/test/scenarios.ts'
import { sharedChromium } from '../support/chromium.ts'
import { itLong } from '../support/is-long.ts'
import { listen } from '../support/listen.ts'

let browser: Browser
let gateway: ScenarioServer
let context: BrowserContext
let complaints: string[] = []

beforeAll(async () => {
  await buildWidgetIfStale()
  browser = await sharedChromium()
})

beforeEach(async () => {
  complaints = []
  gateway = await startScenarioServer({ heartbeatMs: 1_000 })
})
afterEach(async () => {
  await context.close()
  await gateway.close()
})

/** Opens the demo shop in a new browser context and collects the page's errors and warnings. */
async function visit(siteKey: SiteKey, options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
  const site = await createDemoSite({ gatewayUrl: gateway.url, siteKey })
  const { url } = await listen(site)
  context = await browser.newContext(options)
  context.setDefaultTimeout(90_000)
  const page = await context.newPage()
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.addInitScript({
    content: `document.addEventListener('securitypolicyviolation', (event) => {
      console.error('CSP: ' + event.violatedDirective + ' ' + event.blockedURI)
    })`,
  })
  await page.goto(url)
  return page
}

const bubbles = (page: Page) => page.locator('[data-service-widget] .list .bubble')
const launcher = (page: Page) => page.getByRole('button', { name: /^Open chat/ })
const field = (page: Page) => page.getByRole('textbox', { name: 'Your message' })

async function texts(page: Page): Promise<string[]> {
  return (await bubbles(page).allTextContents()).map((text) => text.replace(/^[^:]+: /, ''))
}

describe('a visitor of the shop', () => {
  it('opens the chat, writes, gets an answer, and has the same conversation after a reload', async () => {
    const page = await visit('pk_friendly')
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    await field(page).fill('Do you ship to Norway?')
    await page.keyboard.press('Enter')
    await page.getByText(/· Sent$/).waitFor()
    expect(await texts(page)).toEqual(['Do you ship to Norway?'])

    gateway.conversation('pk_friendly').agentSays('We do, within eight days.')
    await page.getByText('We do, within eight days.').waitFor()
    await page.reload()
    await page.getByText('We do, within eight days.').waitFor()
    gateway.conversation('pk_friendly').agentSays('Anything else?')
    await page.getByText('Anything else?').waitFor()

    expect(await texts(page)).toEqual(['Do you ship to Norway?', 'We do, within eight days.', 'Anything else?'])
    expect(gateway.sessionCount('pk_friendly')).toBe(1)
    expect(complaints).toEqual([])
  })

  itLong('can do everything with the keyboard', async () => {
    const page = await visit('pk_friendly')
    await launcher(page).waitFor()
    for (let presses = 0; presses < 30; presses += 1) {
      await page.keyboard.press('Tab')
      if (await launcher(page).evaluate((button) => button.matches(':focus-visible'))) break
    }
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Nordlicht Support' }).waitFor()
    await page.keyboard.type('First line')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('second line')
    await page.keyboard.press('Enter')
    await page.getByText(/· Sent$/).waitFor()
    expect(gateway.conversation('pk_friendly').messages.map(({ body }) => body)).toEqual(['First line\nsecond line'])

    await page.keyboard.press('Escape')
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(await launcher(page).evaluate((button) => button.matches(':focus-visible'))).toBe(true)
    await page.keyboard.press('Enter')
    expect(await field(page).evaluate((element) => element.matches(':focus'))).toBe(true)
    expect(complaints).toEqual([])
  })

  itLong('gets no retry button if the service rejects the message', async () => {
    const page = await visit('pk_refused')
    await launcher(page).click()
    await field(page).fill('Refused')
    await page.keyboard.press('Enter')
    await page.getByText('Not sent').waitFor()
    expect(await page.getByRole('button', { name: 'Retry' }).count()).toBe(0)
  })

  itLong('sees the message once if the response to its send was lost', async () => {
    const page = await visit('pk_lost_answer')
    await launcher(page).click()
    await field(page).fill('Only once')
    await page.keyboard.press('Enter')
    await page.getByText(/· Sent$/).waitFor()
    expect(await texts(page)).toEqual(['Only once'])
    expect(gateway.conversation('pk_lost_answer').messages).toHaveLength(1)
  })

  itLong('sees that the chat has ended, and can start a new chat', async () => {
    const page = await visit('pk_friendly')
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    gateway.endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
    await page.getByText('This chat has timed out.').waitFor()
    expect(await field(page).isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Start a new chat' }).click()
    await page.getByText('We are online').waitFor()
    expect(await field(page).isVisible()).toBe(true)
    expect(gateway.sessionCount('pk_friendly')).toBe(2)
  })

  it('gets no markup, script or disguised link from a message', async () => {
    const page = await visit('pk_friendly')
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    const hostile =
      '<img src=x onerror=alert(1)> javascript:alert(1) https://user@evil.example see https://example.com/a.'
    gateway.conversation('pk_friendly').agentSays(hostile, '<b>Eve</b>')
    await page.getByText('see https://example.com/a').waitFor()

    const links = await page.locator('[data-service-widget] .bubble a').all()
    expect(await Promise.all(links.map((link) => link.getAttribute('href')))).toEqual(['https://example.com/a'])
    expect(await links[0]?.getAttribute('rel')).toBe('noopener noreferrer')
    expect(await page.locator('[data-service-widget] .bubble img, [data-service-widget] .name b').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  itLong('keeps the scroll position while older messages load', async () => {
    const page = await visit('pk_friendly')
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    for (let count = 1; count <= 80; count += 1)
      gateway.conversation('pk_friendly').agentSays(`message number ${count}.`)
    await page.getByText('message number 80.').waitFor()
    await page.reload()
    await page.getByText('message number 80.').waitFor()
    expect(await bubbles(page).count()).toBe(50)
    await page.locator('[data-service-widget] .scroller').evaluate((scroller) => {
      scroller.scrollTop = 0
    })
    await page.getByText('message number 1.', { exact: false }).first().waitFor()
    expect(await bubbles(page).count()).toBe(80)
    expect(await page.getByText('message number 31.').isVisible()).toBe(true)
    expect(complaints).toEqual([])
  })

  itLong('sees the newest message above the keyboard of a phone', async () => {
    const page = await visit('pk_friendly', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
    await launcher(page).tap()
    await page.getByText('We are online').waitFor()
    for (let count = 1; count <= 20; count += 1)
      gateway.conversation('pk_friendly').agentSays(`message number ${count}.`)
    const newest = bubbles(page).filter({ hasText: 'message number 20.' })
    await newest.waitFor()
    await page.setViewportSize({ width: 390, height: 420 })

    const bottomOf = async (locator: ReturnType<typeof bubbles>) => {
      const { y, height } = (await locator.boundingBox())!
      return y + height
    }
    await expect.poll(() => bottomOf(field(page))).toBeLessThanOrEqual(420)
    await expect.poll(async () => (await bottomOf(newest)) <= (await field(page).boundingBox())!.y).toBe(true)
    // The font must have at least 16 px, because iOS zooms into a field with a smaller font.
    const fieldOf = "document.querySelector('[data-service-widget]').shadowRoot.querySelector('.field')"
    expect(await page.evaluate(`parseFloat(getComputedStyle(${fieldOf}).fontSize)`)).toBeGreaterThanOrEqual(16)
    expect(complaints).toEqual([])
  })
})

itLong('these tests record violations of the page’s Content-Security-Policy (check of the test itself)', async () => {
  const page = await visit('pk_friendly')
  await page.locator('main').evaluate((main) => main.setAttribute('style', 'color: red'))
  await expect.poll(() => complaints.join()).toContain('CSP: style-src-attr')
  await page.evaluate('fetch("https://elsewhere.invalid/").catch(() => {})')
  await expect.poll(() => complaints.join()).toContain('connect-src')
})
