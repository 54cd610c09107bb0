// Takes the widget screenshots of the documents, as part of `npm run make -- images`.
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../../../test/support/chromium.ts'
import { openWidgetPage, type WidgetPageOptions } from '../../../test/support/widget-page.ts'
import { buildWidgetIfStale } from '../../../widget/build.ts'
import { type ScenarioServer, startScenarioServer } from '../../../widget/test/scenario-server.ts'

const folder = join(import.meta.dirname, '../../../docs/images')
const desktop = { width: 1100, height: 780 }
const phone = { width: 390, height: 844 }
const aroundPx = 12

interface View {
  config?: Record<string, unknown>
  viewport?: { width: number; height: number }
  colorScheme?: 'light' | 'dark'
  page?: Partial<WidgetPageOptions>
  arrange(page: Page, gateway: ScenarioServer): Promise<unknown>
}

const inWidget = (page: Page, selector: string) => page.locator(`[data-service-widget] ${selector}`)
const agent = { displayName: 'Anna Keller' }

async function say(page: Page, text: string) {
  await inWidget(page, '.field').fill(text)
  await page.keyboard.press('Enter')
}

/** `lines` alternate, visitor first. */
async function converse(page: Page, gateway: ScenarioServer, lines: string[]) {
  await inWidget(page, '.header[data-state="online"]').waitFor()
  for (const [index, line] of lines.entries()) {
    const talk = gateway.conversation('pk_friendly')
    if (index === 1) talk.emit('agent.assigned', { agent })
    if (index % 2 === 0) await say(page, line)
    else talk.agentSays(line, agent.displayName)
    const row = inWidget(page, '.row').filter({ hasText: line.slice(0, 20) })
    // Replies follow their questions.
    await row.and(inWidget(page, index % 2 === 0 ? '[data-state="queued"]' : '[data-author="agent"]')).waitFor()
  }
}

const english = [
  'Do you ship to Graz?',
  'We do. It takes two days, and from 120 euros on it is free.',
  'And if the lamp does not fit?',
  'Send it back within 60 days. https://shop.example/returns tells how.',
]
const arabic = [
  'هل توصلون إلى فيينا؟',
  'نعم، يستغرق ذلك يومين، وهو مجاني ابتداءً من 120 يورو.',
  'وماذا لو لم يناسبني المصباح؟',
  'يمكنك إعادته خلال 60 يومًا. التفاصيل هنا: https://shop.example/returns',
]
const talk = (page: Page, gateway: ScenarioServer) => converse(page, gateway, english)
const requests = { capabilities: { typing: true, navigation: true, screenshots: true } }
const preChat = {
  fields: [
    { name: 'name', label: 'Your name', type: 'text', required: false, maxLength: 100 },
    { name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 },
    { name: 'question', label: 'What is it about?', type: 'textarea', required: false, maxLength: 500 },
  ],
}
const withForm = {
  capabilities: { preChatForm: true },
  forms: { preChat },
  consent: { required: true, policyUrl: 'https://shop.example/privacy' },
}

async function askForScreenshot(page: Page, gateway: ScenarioServer) {
  await converse(page, gateway, english.slice(0, 2))
  gateway.features.request(gateway.conversation('pk_friendly'), 'screenshot', { purpose: 'To see which lamp you mean' })
  await inWidget(page, '.request').waitFor()
}

async function fillIn(page: Page) {
  await page.getByLabel('Your name').fill('Ada Berger')
  await page.getByLabel('Email address').fill('ada@example.com')
}

const views: Record<string, View> = {
  widget: { arrange: talk },
  'widget-dark': { colorScheme: 'dark', arrange: talk },
  'widget-phone': { viewport: phone, arrange: talk },
  'widget-arabic': {
    page: { lang: 'ar' },
    arrange: (page, gateway) => converse(page, gateway, arabic),
  },
  'widget-consent': { config: requests, arrange: askForScreenshot },
  'widget-form': { config: withForm, arrange: fillIn },
}

async function takeScreenshot(browser: Browser, name: string, view: View) {
  const { config, viewport = desktop, colorScheme = 'light', arrange } = view
  const gateway = await startScenarioServer({ heartbeatMs: 1_000, config })
  const context = { viewport, colorScheme, locale: 'en-GB', reducedMotion: 'reduce' as const }
  const { page, close } = await openWidgetPage({ browser, gateway, context, ...view.page })
  await inWidget(page, '.launcher').click()
  await arrange(page, gateway)
  const { x, y, width, height } = (await inWidget(page, '.panel').boundingBox())!
  const clip =
    viewport === phone
      ? undefined
      : { x: x - aroundPx, y: y - aroundPx, width: width + 2 * aroundPx, height: height + 2 * aroundPx }
  await page.screenshot({ path: join(folder, `${name}.png`), clip })
  await close()
  await gateway.close()
}

await buildWidgetIfStale()
const browser = await launchChromium()
for (const [name, view] of Object.entries(views)) await takeScreenshot(browser, name, view)
await browser.close()
