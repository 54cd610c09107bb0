import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sharedChromium } from '../../test/support/chromium.ts'
import { startPageSite } from './page-site.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'

let browser: Browser
let context: BrowserContext
let server: ScenarioServer
let site: Awaited<ReturnType<typeof startPageSite>>

beforeAll(async () => {
  site = await startPageSite('client-page.ts')
  browser = await sharedChromium()
})
afterAll(() => site.close())
beforeEach(async () => {
  server = await startScenarioServer({ heartbeatMs: 500 })
  context = await browser.newContext()
})
afterEach(async () => {
  await context.close()
  await server.close()
})

async function visit(): Promise<Page> {
  const page = await context.newPage()
  await page.goto(site.url)
  await start(page)
  return page
}

const start = (page: Page) => page.evaluate(`startClient(${JSON.stringify(server.url)})`)
const online = (page: Page) => page.waitForFunction("client.connection() === 'online'")
const shows = (page: Page, expected: string[]) =>
  page.waitForFunction(`shown().join() === ${JSON.stringify(expected.join())}`)

describe('the headless client in a browser page', () => {
  it('a tab and its duplicate show each message once, even after the first tab is closed', async () => {
    const first = await visit()
    await online(first)
    const [second] = await Promise.all([
      context.waitForEvent('page'),
      first.evaluate('void window.open(location.href)'),
    ])
    await second.waitForFunction("typeof startClient === 'function'")
    await start(second)
    await online(second)
    const conversation = server.conversation('pk_friendly')
    conversation.agentSays('Hello, both')
    await Promise.all([first, second].map((page) => shows(page, ['Hello, both: queued'])))
    expect(server.sessionCount('pk_friendly')).toBe(1)

    await first.close()
    conversation.agentSays('Still there?')
    await shows(second, ['Hello, both: queued', 'Still there?: queued'])
    await expect.poll(() => conversation.streams.size).toBe(1)
  })

  it('a page that the back button restores misses no message', async () => {
    const page = await visit()
    await online(page)
    await page.goto('about:blank')
    await expect.poll(() => server.conversation('pk_friendly').streams.size).toBe(0)
    server.conversation('pk_friendly').agentSays('While you were away')
    await page.goBack()
    await page.evaluate(`typeof client === 'object' || startClient(${JSON.stringify(server.url)})`)
    await shows(page, ['While you were away: queued'])
    expect(server.sessionCount('pk_friendly')).toBe(1)
  })
})
