import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach } from 'vitest'
import { buildWidgetIfStale } from '../../widget/build.ts'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import { sharedChromium } from '../support/chromium.ts'
import {
  inWidget,
  openWidgetPage,
  say,
  type WidgetPage,
  type WidgetPageOptions,
  withOffline,
  withPreChat,
  withRequests,
} from '../support/widget-page.ts'

export { inWidget, say, withOffline, withPreChat, withRequests }

/**
 * Starts a new scenario server (a simulated gateway) for each test of the calling file. The
 * returned functions open pages whose widget uses this server.
 */
export function useWidgetPages(initialConfig?: Record<string, unknown>) {
  let browser: Browser
  let gateway: ScenarioServer
  let opened: WidgetPage[] = []

  beforeAll(async () => {
    // Otherwise the first test would include the build, and exceed its time limit on a busy machine.
    await buildWidgetIfStale()
    browser = await sharedChromium()
  })
  beforeEach(async () => {
    opened = []
    gateway = await startScenarioServer({ heartbeatMs: 1_000, config: initialConfig })
  })
  afterEach(async () => {
    for (const one of opened) await one.close()
    await gateway.close()
  })

  return {
    gateway: () => gateway,

    /** Restarts the scenario server with another configuration. */
    async serve(config: Record<string, unknown>, appearance?: Record<string, unknown>) {
      await gateway.close()
      gateway = await startScenarioServer({ heartbeatMs: 1_000, config, appearance })
    },

    async visit(options: Partial<WidgetPageOptions> = {}): Promise<WidgetPage> {
      const visited = await openWidgetPage({ browser, gateway, ...options })
      opened.push(visited)
      return visited
    },
  }
}

/** Like `useWidgetPages`, with functions for the widget's features. */
export function useWidget() {
  const { gateway, serve, visit } = useWidgetPages()

  function ask(kind: 'navigation' | 'screenshot', about: Record<string, unknown> = {}): string {
    return gateway().features.request(gateway().conversation('pk_friendly'), kind, about)
  }

  return {
    gateway,
    serve,

    async visit({ context, ...rest }: Partial<WidgetPageOptions> = {}): Promise<Page> {
      const { page } = await visit({ context: { reducedMotion: 'reduce', ...context }, ...rest })
      // This listener makes Playwright intercept file choosers from now on. Without it, the
      // interception could start too late for a test that waits for a file chooser.
      page.on('filechooser', () => {})
      return page
    },

    /** Sends an agent's navigation or screenshot request. Returns the id of the request. */
    ask,

    async askForScreenshot(page: Page): Promise<string> {
      await open(page)
      const id = ask('screenshot', { purpose: 'To see what is in your basket' })
      await page.getByRole('heading', { name: /asks for a screenshot$/ }).waitFor()
      return id
    },

    /** Shows a long conversation, scrolled back to older messages, while an agent is typing. */
    async showLongConversation(page: Page) {
      await open(page)
      await say(page, 'Do you ship to Graz?')
      await page.locator('.meta', { hasText: '·' }).waitFor()
      const talk = gateway().conversation('pk_friendly')
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
      gateway().endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
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

export async function choosePicture(page: Page, press: () => Promise<unknown>) {
  const buffer = await page.screenshot()
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), press()])
  await chooser.setFiles({ name: 'page.png', mimeType: 'image/png', buffer })
  await page.getByRole('button', { name: 'Send picture' }).waitFor()
}
