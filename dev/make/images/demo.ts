// Takes the demo shop screenshots of the documents, after `npm start`: `npm run make -- images`.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../../../test/support/chromium.ts'
import { operatorOf } from '../../../test/support/operator.ts'
import { readDevConfig } from '../../config.ts'
import type { DemoFile } from '../../demo-seed.ts'

const images = join(import.meta.dirname, '../../../docs/images')
const narrow = { width: 1180, height: 720 }
const wide = { width: 1440, height: 860 }

interface View {
  name: string
  path?: string
  viewport: { width: number; height: number }
  colorScheme: 'light' | 'dark'
  /** Runs when the conversation is complete. */
  arrange?: (page: Page) => Promise<unknown>
}

const views: View[] = [
  { name: 'demo-shop', viewport: narrow, colorScheme: 'light' },
  {
    name: 'demo-shop-workbench',
    viewport: wide,
    colorScheme: 'light',
    async arrange(page) {
      await page.getByRole('button', { name: 'Workbench' }).click()
      await page.getByRole('radio', { name: /^Offline/ }).check()
      await page.getByRole('textbox', { name: 'Your message' }).fill('Then I take one!')
      await page.keyboard.press('Enter')
      await page.getByText('Connection lost. Reconnecting…').waitFor()
    },
  },
  {
    name: 'demo-shop-events',
    path: '/lamps',
    viewport: wide,
    colorScheme: 'dark',
    async arrange(page) {
      await page.keyboard.press('Alt+Shift+E')
      await page.locator('.entries summary', { hasText: 'message.received' }).first().click()
    },
  },
]

async function takeScreenshot(browser: Browser, demo: DemoFile, { name, path = '/', arrange, ...look }: View) {
  const { messaging } = operatorOf(demo.coreUrl, demo.serviceToken)
  const context = await browser.newContext({ ...look, locale: 'en-GB', reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto(demo.origin + path)
  await page.getByRole('button', { name: /^Open chat/ }).click()
  const field = page.getByRole('textbox', { name: 'Your message' })

  async function visitorSays(text: string) {
    await field.fill(text)
    await page.keyboard.press('Enter')
    await page
      .getByText(/· Sent$/)
      .last()
      .waitFor()
  }
  async function agentSays(body: string) {
    const [latest] = (await messaging.listConversations({ limit: 1 })).conversations
    const clientOperationId = `${name}-${body.length}-${Date.now()}`
    await messaging.sendAgentMessage({
      conversationId: latest!.conversationId,
      clientOperationId,
      body,
      agent: { displayName: 'Ada' },
    })
    await page.locator('[data-service-widget] .bubble', { hasText: body.split('.')[0]! }).waitFor()
  }

  await visitorSays('Do you ship to Graz?')
  await agentSays('We do. It takes two days, and from 120 euros on it is free.')
  await visitorSays('And if it does not fit?')
  await agentSays('Send it back within 60 days. See https://shop.example/returns for how.')
  await arrange?.(page)
  await page.screenshot({ path: join(images, `${name}.png`) })
  await context.close()
}

const demo: DemoFile = JSON.parse(await readFile(join(readDevConfig().DATA_DIR, 'demo.json'), 'utf8'))
const browser = await launchChromium()
for (const view of views) await takeScreenshot(browser, demo, view)
await browser.close()
