import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, expect } from 'vitest'
import { createDemoSite } from '../../widget/demo/server.ts'
import { launchChromium } from './chromium.ts'
import { type Operator, operatorOf } from './operator.ts'
import { startStack } from './stack.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'
import type { TestDatabase } from './test-database.ts'

interface VisitSession {
  sessionId: string
  conversationId: string
}

/** A visitor in a browser of their own: nothing is shared with the others. */
export interface ShopVisit {
  page: Page
  context: BrowserContext
  /** The session that the visitor's tab goes on with; where it has none any more, the one before. */
  session(): Promise<VisitSession>
  /** What the pages complained of: errors, warnings, breaches of their Content-Security-Policy. */
  complaints: string[]
}

export interface Shop {
  origin: string
  siteKey: string
  operator: Operator
  /** What the browsers reach the gateway through. */
  network: TcpProxy
  visit(path?: string): Promise<ShopVisit>
  /** An agent's message in a conversation. */
  agentSays(conversationId: string, body: string): Promise<unknown>
  /** Every message of a conversation, as an operator gets them. */
  messagesOf(
    conversationId: string,
  ): ReturnType<Operator['messaging']['listMessages']> extends Promise<infer Answer>
    ? Promise<Answer extends { messages: infer Messages } ? Messages : never>
    : never
}

/**
 * Gateway and core as processes of their own, the demo shop in this one, and a real browser between which the network can be
 * broken. Heartbeats come often, so that silence is noticed soon.
 */
export async function openShop(database: TestDatabase): Promise<Shop> {
  const env = { HEARTBEAT_SECONDS: '2', RECONNECT_MAX_MS: '2000', RATE_LIMIT_FACTOR: '20' }
  const { demo, gateways, cores } = await startStack({ database, env })
  const operator = operatorOf(cores[0]!.url, demo.serviceToken)
  const network = await startTcpProxy(gateways[0]!.url)
  const site = await createDemoSite({
    gatewayUrl: `http://localhost:${network.port}`,
    siteKey: demo.siteKey,
    identity: demo.identity,
  })
  site.listen(0)
  await once(site, 'listening')
  const origin = `http://localhost:${(site.address() as AddressInfo).port}`
  await operator.workspaces.updateInstallation({ siteKey: demo.siteKey, origins: [demo.origin, origin] })
  const browser: Browser = await launchChromium()
  afterAll(async () => {
    await browser.close()
    site.closeAllConnections()
    site.close()
    await network.close()
  })
  let said = 0

  return {
    origin,
    siteKey: demo.siteKey,
    operator,
    network,

    async visit(path = '/') {
      const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1200, height: 800 } })
      const complaints: string[] = []
      let known: VisitSession | undefined
      context.on('console', (message) => {
        const isOwnTrouble = /Failed to load resource|net::ERR_/.test(message.text())
        if (['error', 'warning'].includes(message.type()) && !isOwnTrouble) complaints.push(message.text())
      })
      context.on('weberror', (error) => complaints.push(String(error.error())))
      const page = await context.newPage()
      await page.goto(origin + path)
      return {
        page,
        context,
        complaints,
        async session() {
          known = (await keptSession(context.pages()[0]!, demo.siteKey)) ?? known
          if (!known) throw new Error('the visitor has no session yet')
          return known
        },
      }
    },

    agentSays(conversationId, body) {
      said += 1
      return operator.messaging.sendAgentMessage({
        conversationId,
        clientOperationId: `agent-${said}`,
        body,
        agent: { displayName: 'Ada' },
      })
    },

    async messagesOf(conversationId) {
      const all = []
      for (let after = 0, more = true; more; ) {
        const answer = await operator.messaging.listMessages({ conversationId, afterSequence: after, limit: 100 })
        all.push(...answer.messages)
        after = answer.messages.at(-1)?.sequence ?? 0
        more = answer.hasMore
      }
      return all
    },
  }
}

/** As the package keeps it in the tab's storage. */
async function keptSession(page: Page, siteKey: string): Promise<VisitSession | undefined> {
  // A page on its way to another one has no storage to look into; whoever asks again finds it there.
  const stored = await page
    .evaluate<string | null>(`sessionStorage.getItem('service.widget.1.${siteKey}')`)
    .catch(() => null)
  return stored ? JSON.parse(stored).session : undefined
}

export const field = (page: Page) => page.getByRole('textbox', { name: 'Your message' })

export async function openChat(page: Page) {
  await page.getByRole('button', { name: /^Open chat/ }).click()
  await field(page).waitFor()
}

export async function write(page: Page, text: string) {
  await field(page).fill(text)
  await page.keyboard.press('Enter')
}

/** How long a test looks for what a page is about to show. */
export const soon = { timeout: 30_000 }

const rows = (page: Page, body: string) => page.locator('[data-service-widget] .row').filter({ hasText: body })

/** Waits until the visitor is told that the service has the message. */
export async function untilSent(page: Page, body: string) {
  const states = ['queued', 'sent', 'delivered', 'read'].map((state) => `[data-state="${state}"]`).join()
  await rows(page, body).and(page.locator(states)).waitFor()
  // The newest of the visitor's own messages says it in words.
  await page
    .getByText(/· (Sent|Delivered|Read)$/)
    .last()
    .waitFor()
}

/** Waits until the chat says that it hears what is said. */
export const untilOnline = (page: Page) => page.locator('[data-service-widget] .header[data-state="online"]').waitFor()

/** What stands below a message: its time, its state. */
export const toldOf = (page: Page, body: string) => rows(page, body).locator('.meta').innerText()

/** The texts of the conversation in the page, in their order. */
export async function bubbles(page: Page): Promise<string[]> {
  const texts = await page.locator('[data-service-widget] .list .bubble').allTextContents()
  return texts.map((text) => text.replace(/^[^:]+: /, ''))
}

/** Every message once, in the page and in the core, and in the same order. */
export async function expectEachOnce(shop: Shop, { page, session }: ShopVisit, bodies: string[]) {
  const stored = await shop.messagesOf((await session()).conversationId)
  expect(stored.map(({ body }) => body).toSorted()).toEqual(bodies.toSorted())
  expect(new Set(stored.map(({ messageId }) => messageId)).size).toBe(bodies.length)
  await expect.poll(() => bubbles(page), soon).toEqual(stored.map(({ body }) => body))
}
