import { randomUUID } from 'node:crypto'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { launchChromium } from '../support/chromium.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { setVisible } from '../support/tab-visibility.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()
let stack: Stack
let browser: Browser
let context: BrowserContext

beforeAll(async () => {
  await buildConsoleIfStale()
  ;[stack, browser] = await Promise.all([startStack({ database }), launchChromium()])
})
afterAll(() => browser.close())
beforeEach(async () => {
  context = await browser.newContext({ reducedMotion: 'reduce', viewport: { width: 1440, height: 900 } })
})
afterEach(() => context.close())

async function openConsole(): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${stack.gateways[0]!.url}/console/`)
  const token = page.getByLabel('Or paste a token')
  // The tabs of one browser share one session, so only the first tab signs in.
  if (context.pages().length === 1) {
    await token.fill(stack.demo.workspaceSession)
    await page.getByLabel('Your name').fill('Ada')
    await page.getByRole('button', { name: 'Sign in' }).click()
  }
  await page.getByText('Live', { exact: true }).waitFor()
  return page
}

async function newConversation(): Promise<string> {
  const { origin, siteKey } = stack.demo
  const visitor = await stack.newVisitor({ origin, siteKey })
  const text = `Anyone there? ${randomUUID()}`
  await visitor.send(text)
  return text
}

const row = (page: Page, text: string) => page.locator('.row', { hasText: text })

describe('consoles in one browser over HTTP/1.1', () => {
  it('show a new conversation live in each of ten tabs and can open it', async () => {
    const pages: Page[] = []
    while (pages.length < 10) pages.push(await openConsole())
    const text = await newConversation()
    await Promise.all(pages.map((page) => row(page, text).click()))
    await Promise.all(pages.map((page) => page.locator('.message.visitor', { hasText: text }).waitFor()))
  })

  it('show missed conversations when a hidden tab becomes visible again', async () => {
    const [hidden, visible] = [await openConsole(), await openConsole()]
    await setVisible(hidden, false)
    const text = await newConversation()
    await row(visible, text).waitFor()
    await setVisible(hidden, true)
    await row(hidden, text).waitFor()
  })
})
