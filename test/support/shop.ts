import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expect } from 'vitest'
import { createDemoSite } from '../../widget/demo/server.ts'
import { sharedChromium } from './chromium.ts'
import { atFileEnd } from './clean-up.ts'
import { type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts'
import { startHttp2Proxy } from './http2-proxy.ts'
import { listen } from './listen.ts'
import { type LocalStack, startLocalStack } from './local-stack.ts'
import type { Operator } from './operator.ts'
import type { TestDatabase } from './test-database.ts'

interface VisitSession {
  sessionId: string
  conversationId: string
}

/** A visitor in an isolated browser context. */
export interface ShopVisit {
  page: Page
  context: BrowserContext
  /** Returns the tab's current session, or the last known session. */
  session(): Promise<VisitSession>
  /** Errors, warnings and policy violations that the pages logged. */
  complaints: string[]
}

export interface Shop {
  origin: string
  siteKey: string
  workspaceId: string
  stack: LocalStack
  operator: Operator
  /** TCP proxy between browsers and gateway. */
  network: FaultyProxy
  /** Opens another tab in the same browser, with its own session. */
  openTab(visit: ShopVisit, path?: string): Promise<Page>
  /** Returns the current session of a tab. */
  sessionOf(page: Page): Promise<VisitSession | undefined>
  visit(path?: string): Promise<ShopVisit>
  agentSays(conversationId: string, body: string): Promise<unknown>
  /** Returns all messages of a conversation, read with the operator's API. */
  messagesOf(
    conversationId: string,
  ): ReturnType<Operator['messaging']['listMessages']> extends Promise<infer Answer>
    ? Promise<Answer extends { messages: infer Messages } ? Messages : never>
    : never
}

interface ShopOptions {
  http2?: boolean
  heartbeatSeconds?: number
  coreEnv?: Record<string, string>
}

/**
 * Starts a gateway, a core and the demo shop in this process. Opens pages in the browser that the
 * test files of this process share. The browser connects through a proxy that can break the
 * network. Frequent heartbeats let clients detect an interruption quickly.
 */
export async function openShop(
  database: TestDatabase,
  { http2 = false, heartbeatSeconds = 2, coreEnv = {} }: ShopOptions = {},
): Promise<Shop> {
  const env = { HEARTBEAT_SECONDS: `${heartbeatSeconds}`, RECONNECT_MAX_MS: '2000', RATE_LIMIT_FACTOR: '20' }
  const stack = await startLocalStack({ database, env: { ...env, ...coreEnv } })
  const { demo, gateways } = stack
  const operator = stack.operator()
  const network = await startFaultyProxy(Number(new URL(gateways[0]!.url).port))
  const secure = http2 ? await startHttp2Proxy(`http://localhost:${network.port}`) : undefined
  const site = await createDemoSite({
    gatewayUrl: secure ? `https://localhost:${secure.port}` : `http://localhost:${network.port}`,
    siteKey: demo.siteKey,
    identity: demo.identity,
  })
  const { url: origin } = await listen(site, 'localhost')
  await operator.workspaces.updateInstallation({ siteKey: demo.siteKey, origins: [demo.origin, origin] })
  atFileEnd(async () => {
    await secure?.close()
    await network.close()
  })
  const browser: Browser = await sharedChromium()
  let said = 0

  return {
    origin,
    siteKey: demo.siteKey,
    workspaceId: demo.workspaceId,
    stack,
    operator,
    network,

    async visit(path = '/') {
      const context = await browser.newContext({
        locale: 'en-GB',
        reducedMotion: 'reduce',
        viewport: { width: 1200, height: 800 },
        ignoreHTTPSErrors: http2,
      })
      context.setDefaultTimeout(90_000)
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
          known = (await storedSession(context.pages()[0]!, demo.siteKey)) ?? known
          if (!known) throw new Error('the visitor has no session yet')
          return known
        },
      }
    },

    async openTab({ context }, path = '/') {
      const page = await context.newPage()
      await page.goto(origin + path)
      return page
    },

    sessionOf: (page) => storedSession(page, demo.siteKey),

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

/** Reads the session that the widget has stored in the tab. */
async function storedSession(page: Page, siteKey: string): Promise<VisitSession | undefined> {
  // The storage is not accessible during a navigation. Callers retry.
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

/** Timeout for content that must appear in the page. */
export const soon = { timeout: 30_000 }

const rows = (page: Page, body: string) => page.locator('[data-service-widget] .row').filter({ hasText: body })

/** Waits until the page shows the message as sent. */
export async function untilSent(page: Page, body: string) {
  const states = ['queued', 'sent', 'delivered', 'read'].map((state) => `[data-state="${state}"]`).join()
  await rows(page, body).and(page.locator(states)).waitFor()
  // The widget shows the state as text only on the visitor's newest message.
  await page
    .getByText(/· (Sent|Delivered|Read)$/)
    .last()
    .waitFor()
}

/** Waits until the chat shows that it is online. */
export const untilOnline = (page: Page) => page.locator('[data-service-widget] .header[data-state="online"]').waitFor()

/** Returns the text with time and state below a message. */
export const statusLineOf = (page: Page, body: string) => rows(page, body).locator('.meta').innerText()

/** Returns the texts of the messages in the page, in order. */
export async function bubbles(page: Page): Promise<string[]> {
  const texts = await page.locator('[data-service-widget] .list .bubble').allTextContents()
  return texts.map((text) => text.replace(/^[^:]+: /, ''))
}

/** Expects each message exactly once, in the same order, in the page and in the core. */
export async function expectEachOnce(shop: Shop, { page, session }: ShopVisit, bodies: string[]) {
  const stored = await shop.messagesOf((await session()).conversationId)
  expect(stored.map(({ body }) => body).toSorted()).toEqual(bodies.toSorted())
  expect(new Set(stored.map(({ messageId }) => messageId)).size).toBe(bodies.length)
  await expect.poll(() => bubbles(page), soon).toEqual(stored.map(({ body }) => body))
}
