import { AxeBuilder } from '@axe-core/playwright'
import { MongoClient } from 'mongodb'
import type { Browser, Page, Route } from 'playwright-core'
import { afterEach, beforeAll, expect } from 'vitest'
import { sharedChromium } from '../support/chromium.ts'
import type { Operator } from '../support/operator.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

export const agent = { displayName: 'Anna Keller' }

interface Configuration {
  appearance: { translations?: object }
  capabilities: Record<string, boolean>
  forms: { preChat?: object; offline?: object }
}

interface Visit {
  page: Page
  sessionId: string
  conversationId: string
  complaints: string[]
}

/**
 * Starts a demo shop for the tests of the calling file, with all functions of the widget. The
 * returned functions open pages of the shop and change its installation.
 */
export function useFeatures(coreEnv: Record<string, string> = {}) {
  const database = testDatabase()
  let shop: Shop
  let operator: Operator
  let browser: Browser

  beforeAll(async () => {
    shop = await openShop(database, { coreEnv })
    operator = shop.operator
    await configure({ navigation: true, screenshots: true })
    browser = await sharedChromium()
  })
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
  })

  async function configuration(): Promise<Configuration> {
    const url = `${shop.stack.gateways[0]!.url}/api/integrations/v1/widget/config/${shop.siteKey}`
    const response = await fetch(url, { headers: { Origin: shop.origin, 'X-Service-Widget-Version': '1.0' } })
    return (await response.json()) as Configuration
  }

  /** Changes the installation, and waits until the gateway returns the new configuration. */
  async function configure(capabilities: Record<string, boolean>, forms?: object) {
    await operator.workspaces.updateInstallation({ siteKey: shop.siteKey, capabilities, ...(forms && { forms }) })
    await until('the configuration to take effect', async () => {
      const config = await configuration()
      const isSame = Object.entries(capabilities).every(([name, on]) => config.capabilities[name] === on)
      const hasForm =
        (!capabilities.preChatForm || config.forms.preChat) && (!capabilities.offlineForm || config.forms.offline)
      return isSame && hasForm
    })
  }

  return {
    shop: () => shop,
    operator: () => operator,
    browser: () => browser,
    configuration,
    configure,

    /** @param onConfig intercepts the page's request for the configuration. */
    async visit(onConfig?: (route: Route) => Promise<void>): Promise<Visit> {
      const context = await browser.newContext({ permissions: [], reducedMotion: 'reduce' })
      const page = await context.newPage()
      const complaints: string[] = []
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
      })
      page.on('pageerror', (error) => complaints.push(String(error)))
      if (onConfig) await page.route('**/config/*', onConfig)
      const created = page.waitForResponse((response) => response.url().endsWith('/sessions'))
      await page.goto(shop.origin)
      const open = page.getByRole('button', { name: /^Open chat/ })
      await open.click()
      const { sessionId, conversationId } = (await (await created).json()) as Visit
      return { page, sessionId, conversationId, complaints }
    },

    async commandState(commandId: string): Promise<string | undefined> {
      return (await operator.commands.getCommand({ commandId })).command?.state
    },

    async requestScreenshot(sessionId: string, purpose?: string): Promise<string> {
      return (await operator.commands.requestScreenshot({ sessionId, purpose })).command!.commandId
    },

    async leadsOf(conversationId: string) {
      const client = new MongoClient(database.uri)
      const leads = await client.db(database.name).collection('leads').find({ conversationId }).toArray()
      await client.close()
      return leads
    },
  }
}

export const field = (page: Page) => page.getByRole('textbox', { name: 'Your message' })
export const online = (page: Page) => page.getByText('We are online').waitFor()

export async function write(page: Page, text: string) {
  await field(page).fill(text)
  await page.keyboard.press('Enter')
  await page.getByText(/· Sent$/).waitFor()
}

export async function expectAccessible(page: Page) {
  // The rule about duplicate banners is disabled, because axe counts the panel's header element as
  // a second banner of the page.
  const axe = new AxeBuilder({ page }).include('[data-service-widget]').disableRules('landmark-no-duplicate-banner')
  const { violations } = await axe.analyze()
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
}
