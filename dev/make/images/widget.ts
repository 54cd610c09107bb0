// Takes the widget screenshots of the documents, as part of `npm run make -- images`. With a folder
// as argument, writes the screenshots there and adds widget states that no document shows.
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../../../test/support/chromium.ts'
import { openWidgetPage, type WidgetPageOptions } from '../../../test/support/widget-page.ts'
import { buildWidgetIfStale } from '../../../widget/build.ts'
import { type ScenarioServer, startScenarioServer } from '../../../widget/test/scenario-server.ts'
import type { SiteKey } from '../../../widget/test/scenarios.ts'

const [, , folder = join(import.meta.dirname, '../../../docs/images')] = process.argv
const takesAll = process.argv.length > 2
const desktop = { width: 1100, height: 780 }
const phone = { width: 390, height: 844 }
const aroundPx = 12

interface View {
  isForDocs?: boolean
  siteKey?: SiteKey
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

/** @param lines alternating lines of visitor and agent, visitor first */
async function converse(page: Page, gateway: ScenarioServer, lines: string[]) {
  await inWidget(page, '.header[data-state="online"]').waitFor()
  for (const [index, line] of lines.entries()) {
    const talk = gateway.conversation('pk_friendly')
    if (index === 1) talk.emit('agent.assigned', { agent })
    if (index % 2 === 0) await say(page, line)
    else talk.agentSays(line, agent.displayName)
    const row = inWidget(page, '.row').filter({ hasText: line.slice(0, 20) })
    // Waits for each message before the next one is sent, so that replies follow their questions.
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
const withRating = { capabilities: { rating: true } }
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
  widget: { isForDocs: true, arrange: talk },
  'widget-dark': { isForDocs: true, colorScheme: 'dark', arrange: talk },
  'widget-phone': { isForDocs: true, viewport: phone, arrange: talk },
  'widget-arabic': {
    isForDocs: true,
    page: { lang: 'ar' },
    arrange: (page, gateway) => converse(page, gateway, arabic),
  },
  'widget-consent': { isForDocs: true, config: requests, arrange: askForScreenshot },
  'widget-form': { isForDocs: true, config: withForm, arrange: fillIn },
  'consent-dark': { config: requests, colorScheme: 'dark', arrange: askForScreenshot },
  'form-dark': { config: withForm, colorScheme: 'dark', arrange: fillIn },
  'form-phone': { config: withForm, viewport: phone, arrange: fillIn },
  'form-complaints': {
    config: withForm,
    async arrange(page) {
      await page.getByLabel('Email address').fill('ada at')
      await page.keyboard.press('Enter')
      await inWidget(page, '[aria-invalid="true"]').waitFor()
    },
  },
  preview: {
    config: requests,
    async arrange(page, gateway) {
      await askForScreenshot(page, gateway)
      const picture = { name: 'page.png', mimeType: 'image/png', buffer: await page.screenshot() }
      const [chooser] = await Promise.all([
        page.waitForEvent('filechooser'),
        page.getByRole('button', { name: 'Choose a picture' }).click(),
      ])
      await chooser.setFiles(picture)
      await page.getByRole('button', { name: 'Send picture' }).waitFor()
    },
  },
  ended: { arrange: endSession },
  'ended-phone-dark': { viewport: phone, colorScheme: 'dark', arrange: endSession },
  'offline-form': {
    config: {
      ...withForm,
      capabilities: { offlineForm: true },
      forms: { offline: preChat },
      availability: { online: false },
    },
    arrange: (page) => page.getByLabel('Your name').waitFor(),
  },
  navigation: {
    config: requests,
    async arrange(page, gateway) {
      await converse(page, gateway, english.slice(0, 2))
      const about = { url: 'https://shop.example/lamps/dune', label: 'The lamp Dune' }
      gateway.features.request(gateway.conversation('pk_friendly'), 'navigation', about)
      await inWidget(page, '.request').waitFor()
    },
  },
  rating: { config: withRating, arrange: rate },
  'rating-dark': { config: withRating, colorScheme: 'dark', arrange: rate },
  'rating-phone-arabic': {
    config: withRating,
    viewport: phone,
    page: { lang: 'ar', dir: 'rtl' },
    arrange: askForRating,
  },
  failed: { siteKey: 'pk_rate_limited_long', arrange: failToSend },
  'failed-dark': { siteKey: 'pk_rate_limited_long', colorScheme: 'dark', arrange: failToSend },
  offline: { arrange: goOffline },
  'offline-dark': { colorScheme: 'dark', arrange: goOffline },
  'offline-phone-arabic': { viewport: phone, page: { lang: 'ar', dir: 'rtl' }, arrange: goOffline },
}

async function askForRating(page: Page, gateway: ScenarioServer) {
  await converse(page, gateway, english.slice(0, 2))
  for (const event of ['conversation.closed', 'rating.requested']) gateway.conversation('pk_friendly').emit(event)
  await inWidget(page, '.face').first().waitFor()
}

async function rate(page: Page, gateway: ScenarioServer) {
  await askForRating(page, gateway)
  await page.getByRole('button', { name: 'Good', exact: true }).click()
  await page.getByRole('button', { name: 'Send rating' }).waitFor()
}

async function failToSend(page: Page) {
  await inWidget(page, '.header[data-state="online"]').waitFor()
  await say(page, 'Do you ship to Graz?')
  await inWidget(page, '.retry').waitFor()
}

async function endSession(page: Page, gateway: ScenarioServer) {
  await talk(page, gateway)
  gateway.endSessions('pk_friendly', 'session.revoked', { status: 403, code: 'SessionRevoked', terminal: true })
  await inWidget(page, '.notice').waitFor()
}

async function goOffline(page: Page, gateway: ScenarioServer) {
  await converse(page, gateway, english.slice(0, 2))
  await page.context().setOffline(true)
  await say(page, 'And if it does not fit?')
  await inWidget(page, '.header[data-state="reconnecting"]').waitFor({ timeout: 10_000 })
}

async function takeScreenshot(browser: Browser, name: string, view: View) {
  const { siteKey, config, viewport = desktop, colorScheme = 'light', arrange } = view
  const gateway = await startScenarioServer({ heartbeatMs: 1_000, config })
  const context = { viewport, colorScheme, locale: 'en-GB', reducedMotion: 'reduce' as const }
  const { page, close } = await openWidgetPage({ browser, gateway, siteKey, context, ...view.page })
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
for (const [name, view] of Object.entries(views))
  if (takesAll || view.isForDocs) await takeScreenshot(browser, name, view)
await browser.close()
