// Takes the screenshots of the documents, of the demo that `npm start` runs and of the widget: `npm run make -- images`.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { readDevConfig } from '../../dev/config.ts'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { buildWidgetIfStale } from '../../widget/build.ts'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import { signAssertion } from '../support/assertion.ts'
import { launchChromium } from '../support/chromium.ts'
import { operatorOf } from '../support/operator.ts'
import { pageSizes } from '../support/page-checks.ts'
import { startVisitor } from '../support/visitor.ts'
import { inWidget, openWidgetPage, say, withPreChat, withRequests } from '../support/widget-page.ts'

type Look = Pick<BrowserContextOptions, 'viewport' | 'colorScheme'>

const pathOf = (name: string) => join(import.meta.dirname, `../../docs/images/${name}.png`)
const wide: Look = { viewport: { width: 1440, height: 860 }, colorScheme: 'light' }
const { phone } = pageSizes
const aroundPx = 12

const demo: DemoFile = JSON.parse(await readFile(join(readDevConfig().DATA_DIR, 'demo.json'), 'utf8'))
const { messaging } = operatorOf(demo.coreUrl, demo.serviceToken)
const browser = await launchChromium()

const answer = (conversationId: string, body: string) =>
  messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body, agent: { displayName: 'Ada' } })

async function newPage(options: BrowserContextOptions) {
  return (await browser.newContext({ ...options, reducedMotion: 'reduce' })).newPage()
}

async function save(name: string, page: Page) {
  await page.screenshot({ path: pathOf(name) })
  await page.context().close()
}

/** `arrange` runs when the conversation is complete. */
async function takeDemo(name: string, look: Look, path = '/', arrange?: (page: Page) => Promise<unknown>) {
  const page = await newPage({ ...look, locale: 'en-GB' })
  await page.goto(demo.origin + path)
  await page.getByRole('button', { name: /^Open chat/ }).click()

  async function visitorSays(text: string) {
    await say(page, text)
    await page
      .getByText(/· Sent$/)
      .last()
      .waitFor()
  }
  async function agentSays(body: string) {
    const [latest] = (await messaging.listConversations({ limit: 1 })).conversations
    await answer(latest!.conversationId, body)
    await page.locator('[data-service-widget] .bubble', { hasText: body.split('.')[0]! }).waitFor()
  }

  await visitorSays('Do you ship to Graz?')
  await agentSays('We do. It takes two days, and from 120 euros on it is free.')
  await visitorSays('And if it does not fit?')
  await agentSays('Send it back within 60 days. See https://shop.example/returns for how.')
  await arrange?.(page)
  await save(name, page)
}

interface View extends Look {
  config?: Record<string, unknown>
  lang?: string
  arrange(page: Page, gateway: ScenarioServer): Promise<unknown>
}

const agent = { displayName: 'Anna Keller' }

/** `lines` are of visitor and agent in turn, visitor first. */
async function converse(page: Page, gateway: ScenarioServer, lines: string[]) {
  await inWidget(page, '.header[data-state="online"]').waitFor()
  for (const [index, line] of lines.entries()) {
    const talk = gateway.conversation('pk_friendly')
    if (index === 1) talk.emit('agent.assigned', { agent })
    if (index % 2 === 0) await say(page, line)
    else talk.agentSays(line, agent.displayName)
    const row = inWidget(page, '.row').filter({ hasText: line.slice(0, 20) })
    // Waits for each message, so that replies follow their questions.
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
const withForm = { ...withPreChat, consent: { required: true, policyUrl: 'https://shop.example/privacy' } }

async function askForScreenshot(page: Page, gateway: ScenarioServer) {
  await converse(page, gateway, english.slice(0, 2))
  gateway.features.request(gateway.conversation('pk_friendly'), 'screenshot', { purpose: 'To see which lamp you mean' })
  await inWidget(page, '.request').waitFor()
}

const views: Record<string, View> = {
  widget: { arrange: talk },
  'widget-dark': { colorScheme: 'dark', arrange: talk },
  'widget-phone': { viewport: phone, arrange: talk },
  'widget-arabic': { lang: 'ar', arrange: (page, gateway) => converse(page, gateway, arabic) },
  'widget-consent': { config: withRequests, arrange: askForScreenshot },
  'widget-form': { config: withForm, arrange: (page) => page.getByLabel('Email address').fill('ada@example.com') },
}

async function takeWidget(name: string, view: View) {
  const { config, viewport = { width: 1100, height: 780 }, colorScheme = 'light', arrange, lang } = view
  const gateway = await startScenarioServer({ heartbeatMs: 1_000, config })
  const context = { viewport, colorScheme, locale: 'en-GB', reducedMotion: 'reduce' as const }
  const { page, close } = await openWidgetPage({ browser, gateway, context, lang })
  await inWidget(page, '.launcher').click()
  await arrange(page, gateway)
  const { x, y, width, height } = (await inWidget(page, '.panel').boundingBox())!
  const around = { x: x - aroundPx, y: y - aroundPx, width: width + 2 * aroundPx, height: height + 2 * aroundPx }
  await page.screenshot({ path: pathOf(name), ...(viewport !== phone && { clip: around }) })
  await close()
  await gateway.close()
}

/** Returns the id of the last conversation, which has a verified customer. */
async function createConversations() {
  let latest = ''
  for (const [index, lines] of [
    ['The code WINTER does not work for me'],
    ['Is the showroom open on Saturday?'],
    ['Do you ship to Graz?', 'We do. It takes two days, and from 60 euros on it is free.', 'And if it does not fit?'],
  ].entries()) {
    const visitor = await startVisitor(demo)
    const claims = { sub: 'customer-4711', name: 'Maria Huber', ctx: { plan: 'gold', orders: 12 } }
    const assertion = signAssertion({ siteKey: demo.siteKey, ...demo.identity }, { claims })
    if (index === 2) {
      const headers = { 'Idempotency-Key': randomUUID() }
      visitor.session = (await visitor.call('POST', '/sessions/identify', { body: { assertion }, headers })).body
    }
    const page = { url: `${demo.origin}/jackets/alpine`, title: 'Alpine jacket', viewport: pageSizes.laptop }
    await visitor.call('POST', '/context/page', { body: page })
    const { conversationId } = visitor.session
    for (const [turn, body] of lines.entries()) {
      if (turn % 2 === 0) await visitor.send(body)
      else await answer(conversationId, body)
    }
    latest = conversationId
  }
  return latest
}

async function takeConsole(name: string, conversationId: string, look: Look) {
  const page = await newPage(look)
  await page.goto(`${demo.gatewayUrl}/console/conversations/${conversationId}`)
  await page.getByLabel('Or paste a token').fill(demo.workspaceSession)
  await page.getByLabel('Your name').fill('Ada')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.message', { hasText: 'And if it does not fit?' }).last().waitFor()
  await page.locator('.details', { hasText: 'customer-4711' }).waitFor({ state: 'attached' })
  await save(name, page)
}

await takeDemo('demo-shop', { viewport: { width: 1180, height: 720 }, colorScheme: 'light' })
await takeDemo('demo-shop-workbench', wide, '/', async (page) => {
  await page.getByRole('button', { name: 'Workbench' }).click()
  await page.getByRole('radio', { name: /^Offline/ }).check()
  await say(page, 'Then I take one!')
  await page.getByText('Connection lost. Reconnecting…').waitFor()
})
await takeDemo('demo-shop-events', { ...wide, colorScheme: 'dark' }, '/lamps', async (page) => {
  await page.keyboard.press('Alt+Shift+E')
  await page.locator('.entries summary', { hasText: 'message.received' }).first().click()
})
await buildWidgetIfStale()
for (const [name, view] of Object.entries(views)) await takeWidget(name, view)
const conversationId = await createConversations()
await takeConsole('console', conversationId, { viewport: { width: 1440, height: 900 }, colorScheme: 'light' })
await takeConsole('console-phone', conversationId, { viewport: phone, colorScheme: 'light' })
await browser.close()
