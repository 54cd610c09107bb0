import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import { launchChromium } from '../support/chromium.ts'
import { openWidgetPage, type WidgetPage, type WidgetPageOptions } from '../support/widget-page.ts'

const preChat = {
  fields: [
    { name: 'name', label: 'Your name', type: 'text', required: false, maxLength: 100 },
    { name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 },
    { name: 'question', label: 'What is it about?', type: 'textarea', required: false, maxLength: 500 },
  ],
}
const offline = { fields: [{ name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 }] }
const consent = { required: true, policyUrl: 'https://shop.example/privacy' }
export const withPreChat = { capabilities: { preChatForm: true }, forms: { preChat }, consent }
export const withOffline = { capabilities: { offlineForm: true }, forms: { offline }, availability: { online: false } }
export const withRequests = { capabilities: { typing: true, navigation: true, screenshots: true } }

export const inWidget = (page: Page, selector: string) => page.locator(`[data-service-widget] ${selector}`)

/** The widget on a page of its own, before the scenario server: both anew for each test of the file that calls this. */
export function useWidget() {
  let browser: Browser
  let gateway: ScenarioServer
  let opened: WidgetPage[] = []

  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser.close())
  beforeEach(async () => {
    opened = []
    gateway = await startScenarioServer({ heartbeatMs: 1_000 })
  })
  afterEach(async () => {
    for (const one of opened) await one.close()
    await gateway.close()
  })

  function ask(kind: 'navigation' | 'screenshot', about: Record<string, unknown> = {}): string {
    return gateway.features.request(gateway.conversation('pk_friendly'), kind, about)
  }

  return {
    gateway: () => gateway,

    /** Serves with another configuration from now on. */
    async serve(config: Record<string, unknown>, appearance?: Record<string, unknown>) {
      await gateway.close()
      gateway = await startScenarioServer({ heartbeatMs: 1_000, config, appearance })
    },

    async visit({ context, ...rest }: Partial<WidgetPageOptions> = {}): Promise<Page> {
      const reduced = { reducedMotion: 'reduce', ...context } as const
      const visited = await openWidgetPage({ browser, gateway, context: reduced, ...rest })
      opened.push(visited)
      // Whoever waits for a chooser finds that its interception has long begun.
      visited.page.on('filechooser', () => {})
      return visited.page
    },

    /** An agent asks for something. Returns the request's id. */
    ask,

    async askForScreenshot(page: Page): Promise<string> {
      await open(page)
      const id = ask('screenshot', { purpose: 'To see what is in your basket' })
      await page.getByRole('heading', { name: /asks for a screenshot$/ }).waitFor()
      return id
    },

    /** More than the panel holds, scrolled back, while an agent writes. */
    async showLongConversation(page: Page) {
      await open(page)
      await say(page, 'Do you ship to Graz?')
      await page.locator('.meta', { hasText: '·' }).waitFor()
      const talk = gateway.conversation('pk_friendly')
      for (let count = 1; count <= 12; count += 1) talk.agentSays(`We do, see https://shop.example/${count}`)
      await page.getByText('shop.example/12').waitFor()
      talk.emit('typing.started', { author: { kind: 'agent', displayName: 'Anna Keller' } })
      await inWidget(page, '.typing').waitFor()
      await page.evaluate(
        `document.querySelector('[data-service-widget]').shadowRoot.querySelector('.scroller').scrollTop = 120`,
      )
      await inWidget(page, '.jump').waitFor()
    },

    async showEndedSession(page: Page) {
      await open(page)
      gateway.endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
      await inWidget(page, '.again').waitFor()
    },
  }
}

export async function open(page: Page) {
  await inWidget(page, '.launcher').click()
  await inWidget(page, '.header[data-state="online"]').waitFor()
}

export async function openForm(page: Page) {
  await inWidget(page, '.launcher').click()
  await inWidget(page, '.form-view').waitFor()
  await inWidget(page, '.header[data-state="online"], .header[data-state="away"]').first().waitFor()
}

export async function say(page: Page, text: string) {
  await inWidget(page, '.field').fill(text)
  await page.keyboard.press('Enter')
}

export async function choosePicture(page: Page, press: () => Promise<unknown>) {
  const buffer = await page.screenshot()
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), press()])
  await chooser.setFiles({ name: 'page.png', mimeType: 'image/png', buffer })
  await page.getByRole('button', { name: 'Send picture' }).waitFor()
}
