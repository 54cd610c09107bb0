import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { sharedChromium } from '../support/chromium.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import { freePort, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()
let dataDir: string
let demo: DemoFile
let operator: Operator
let browser: Browser

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'service-shop-'))
  const [gatewayPort, corePort, demoPort] = [await freePort(), await freePort(), await freePort()]
  const ports = { GATEWAY_PORT: `${gatewayPort}`, CORE_PORT: `${corePort}`, DEMO_PORT: `${demoPort}` }
  await startProcess({
    entry: 'dev/start.ts',
    name: 'npm start',
    env: { DATA_DIR: dataDir, MONGODB_URI: database.uri, MONGODB_DATABASE: database.name, LOG_LEVEL: 'warn', ...ports },
    readyUrl: `http://localhost:${demoPort}/`,
  })
  demo = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  operator = operatorOf(demo.coreUrl, demo.serviceToken)
  browser = await sharedChromium()
})
afterAll(async () => {
  await rm(dataDir, { recursive: true, force: true })
})

interface Visit {
  page: Page
  consoleErrors: string[]
}

async function visitShop(): Promise<Visit> {
  const page = await (await browser.newContext()).newPage()
  const consoleErrors: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) consoleErrors.push(message.text())
  })
  page.on('pageerror', (error) => consoleErrors.push(String(error)))
  await page.goto(demo.origin)
  return { page, consoleErrors }
}

const openChat = (page: Page) => page.getByRole('button', { name: /^Open chat/ }).click()

async function write(page: Page, text: string) {
  await page.getByRole('textbox', { name: 'Your message' }).fill(text)
  await page.keyboard.press('Enter')
}

async function bubbles(page: Page): Promise<string[]> {
  const texts = await page.locator('[data-service-widget] .list .bubble').allTextContents()
  return texts.map((text) => text.replace(/^[^:]+: /, ''))
}

async function latestConversation(): Promise<string> {
  const { conversations } = await operator.messaging.listConversations({ limit: 1 })
  return conversations[0]?.conversationId ?? ''
}

const answer = (conversationId: string, body: string) =>
  operator.messaging.sendAgentMessage({
    conversationId,
    clientOperationId: body.replace(/\W/g, '-'),
    body,
    agent: { displayName: 'Ada' },
  })

describe('a visitor of the demo shop and an agent', () => {
  it('exchange messages: the visitor sees each message exactly once, both live and after a reload', async () => {
    const { page, consoleErrors } = await visitShop()
    await openChat(page)
    await write(page, 'Do you ship to Graz?')
    await page.getByText(/· Sent$/).waitFor()
    expect(await bubbles(page)).toEqual(['Do you ship to Graz?'])

    const conversationId = await latestConversation()
    await answer(conversationId, 'We do, in two days.')
    await page.getByText('We do, in two days.').waitFor()
    expect(await bubbles(page)).toEqual(['Do you ship to Graz?', 'We do, in two days.'])

    await page.reload()
    await page.getByText('We do, in two days.').waitFor()
    await write(page, 'Thank you!')
    await answer(conversationId, 'Anything else?')
    await page.getByText('Anything else?').waitFor()
    await page.getByText('Thank you!').waitFor()
    expect((await bubbles(page)).toSorted()).toEqual([
      'Anything else?',
      'Do you ship to Graz?',
      'Thank you!',
      'We do, in two days.',
    ])
    // After the reload, session and conversation are the same, and the log has exactly four
    // messages.
    expect(await latestConversation()).toBe(conversationId)
    const { messages } = await operator.messaging.listMessages({ conversationId })
    expect(new Set(messages.flatMap(({ sessionId }) => sessionId ?? [])).size).toBe(1)
    expect(await bubbles(page)).toEqual(messages.map(({ body }) => body))
    expect(consoleErrors).toEqual([])
  })

  it('cannot continue after the session is revoked: the chat shows that it has ended', async () => {
    const { page } = await visitShop()
    await openChat(page)
    await write(page, 'Hello?')
    await page.getByText(/· Sent$/).waitFor()
    const { messages } = await operator.messaging.listMessages({ conversationId: await latestConversation() })
    await operator.sessions.revokeSession({ sessionId: messages[0]!.sessionId! })
    await page.getByText('This chat was ended by the site.').waitFor()
    expect(await page.getByRole('textbox', { name: 'Your message' }).count()).toBe(0)
  })
})
