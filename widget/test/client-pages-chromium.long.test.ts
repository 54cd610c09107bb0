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

const control = (call: string, value?: unknown) =>
  fetch(`${server.url}/control`, { method: 'POST', body: JSON.stringify({ call, siteKey: 'pk_friendly', value }) })

describe('the headless client in a browser page', () => {
  it.each(['stallSends', 'stallAnswers'])(
    'a page that is reloaded during a send shows the message once (%s)',
    async (how) => {
      const page = await visit()
      await online(page)
      await control('set', { [how]: 1, dropEvents: 1 })
      await page.evaluate("client.sendMessage('Hello'), client.setDraft('And')")
      await expect.poll(() => server.seen('POST /messages').length).toBe(1)
      await page.reload()
      await start(page)
      await shows(page, ['Hello: queued'])
      await control('release')
      await page.evaluate("client.sendMessage('Again')")
      await shows(page, ['Hello: queued', 'Again: queued'])
      expect(await page.evaluate('client.draft()')).toBe('And')
      expect(server.conversation('pk_friendly').messages.map(({ body }) => body)).toEqual(['Hello', 'Again'])
      expect(server.sessionCount('pk_friendly')).toBe(1)
    },
  )

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

  it('a page without a network keeps messages and sends them when the network returns', async () => {
    const page = await visit()
    await online(page)
    await context.setOffline(true)
    await page.evaluate("client.sendMessage('Hello')")
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 50))')
    expect(server.seen('POST /messages')).toEqual([])
    await context.setOffline(false)
    await shows(page, ['Hello: queued'])
    expect(server.conversation('pk_friendly').messages).toHaveLength(1)
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
