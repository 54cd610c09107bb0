// Takes the documents' pictures of the demo shop: `npm start` in one terminal, `npm run docs:images` in another.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { readCoreConfig } from '../core/config.ts'
import type { DemoFile } from '../core/demo-seed.ts'
import { launchChromium } from '../test/support/chromium.ts'
import { operatorOf } from '../test/support/operator.ts'

const images = join(import.meta.dirname, '../docs/images')
const desktop = { width: 1280, height: 800 }
const phone = { width: 390, height: 844 }

const views = [
  { name: 'demo-shop', viewport: desktop, colorScheme: 'light' },
  { name: 'demo-shop-dark', viewport: desktop, colorScheme: 'dark' },
  { name: 'demo-shop-phone', viewport: phone, colorScheme: 'light' },
  { name: 'demo-shop-phone-dark', viewport: phone, colorScheme: 'dark' },
] as const

async function takePicture(browser: Browser, demo: DemoFile, { name, ...look }: (typeof views)[number]) {
  const { messaging } = operatorOf(demo.coreUrl, demo.serviceToken)
  const page = await (await browser.newContext({ ...look, reducedMotion: 'reduce' })).newPage()
  await page.goto(demo.origin)
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
    const clientOperationId = `${name}-${body.length}`
    await messaging.sendAgentMessage({
      conversationId: latest!.conversationId,
      clientOperationId,
      body,
      agent: { displayName: 'Ada' },
    })
    await page.getByText(body.split('.')[0]!).waitFor()
  }

  await visitorSays('Do you ship to Graz?')
  await agentSays('We do. It takes two days, and from 60 euros on it is free.')
  await visitorSays('And if it does not fit?')
  await agentSays('Send it back within 30 days. See https://shop.example/returns for how.')
  await page.screenshot({ path: join(images, `${name}.png`) })
  await page.context().close()
}

const demo: DemoFile = JSON.parse(await readFile(join(readCoreConfig().DATA_DIR, 'demo.json'), 'utf8'))
const browser = await launchChromium()
for (const view of views) await takePicture(browser, demo, view)
await browser.close()
