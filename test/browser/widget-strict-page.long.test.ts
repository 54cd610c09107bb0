import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { widgetLocales } from '../../contract/widget-locales.ts'
import { assertionOf } from '../../widget/test/assertion-of.ts'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import { sharedChromium } from '../support/chromium.ts'
import { openWidgetPage, type WidgetPage } from '../support/widget-page.ts'

let browser: Browser
let gateway: ScenarioServer
let opened: WidgetPage | undefined

beforeAll(async () => {
  browser = await sharedChromium()
})
afterEach(async () => {
  await opened?.close()
  await gateway.close()
})

const preChat = {
  fields: [
    { name: 'email', label: 'E-Mail', type: 'email', required: true, maxLength: 254 },
    { name: 'question', label: 'Frage', type: 'textarea', required: false, maxLength: 500 },
  ],
}
const config = {
  capabilities: { typing: true, pageContext: true, preChatForm: true, navigation: true, screenshots: true },
  forms: { preChat },
}
const consent = { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: 'v1' }

/** Script of the test page. Its identity provider signs in the person that `window.person` names. */
const pageScript = `
  window.person = undefined
  const assertions = { ada: '${assertionOf('ada', 'Ada Berger')}', bob: '${assertionOf('bob', 'Bob')}' }
  addEventListener('service-widget:start', ({ detail }) => {
    detail.configure({ identityProvider: async () => assertions[window.person] })
  })
  addEventListener('service-widget:ready', ({ detail }) => { window.widget = detail.widget })
`

async function visit(more: object = {}) {
  gateway = await startScenarioServer({ heartbeatMs: 1_000, config: { ...config, ...more } })
  const fetched: string[] = []
  const context = { locale: 'de-AT' }
  opened = await openWidgetPage({ browser, gateway, lang: 'de', pageScript, context })
  const { page } = opened
  page.on('request', (request) => {
    const [, name] = /\/widget\/v1\/\w+\/(.+)\.js$/.exec(request.url()) ?? []
    if (name) fetched.push(name)
  })
  const policies = (await page.reload())!.headers()['content-security-policy']
  expect(policies).toContain("default-src 'none'")
  expect(policies).toContain("require-trusted-types-for 'script'; trusted-types 'none'")
  return { ...opened, fetched }
}

const button = (page: Page, name: RegExp) => page.getByRole('button', { name })
const ask = (kind: 'navigation' | 'screenshot', about: Record<string, unknown> = {}) =>
  gateway.features.request(gateway.conversation('pk_friendly'), kind, about)

/** After a sign-in, a request of the closed session may still be under way. It gets a 401, which Chromium logs. */
const withoutLateRequests = (complaints: string[]) => complaints.filter((complaint) => !/status of 401/.test(complaint))

it('parts that are loaded later cause no policy violation on a strict page with Trusted Types', async () => {
  const { page, complaints, fetched } = await visit({ consent })
  await button(page, /^Chat öffnen/).click()
  const step = page.getByRole('region', { name: 'Ihre Einwilligung' })
  await step.getByRole('button', { name: 'Ablehnen' }).click()
  await step.getByRole('button', { name: 'Neu entscheiden' }).click()
  await step.getByRole('button', { name: 'Ich stimme zu' }).click()
  await step.waitFor({ state: 'hidden' })
  expect(gateway.features.consents).toEqual(['denied', 'granted'])
  await page.getByLabel('E-Mail').fill('ada at example')
  await page.keyboard.press('Enter')
  await page.locator('[data-service-widget] [aria-invalid="true"]').waitFor()
  await page.getByLabel('E-Mail').fill('ada@example.com')
  await page.keyboard.press('Enter')
  const field = page.getByRole('textbox', { name: 'Ihre Nachricht' })
  await field.waitFor()
  expect(gateway.features.leads).toEqual([{ email: 'ada@example.com' }])

  await field.pressSequentially('Guten Tag')
  await page.keyboard.press('Enter')
  const talk = gateway.conversation('pk_friendly')
  talk.emit('agent.assigned', { agent: { displayName: 'Anna Keller', avatarUrl: 'https://shop.example/anna.png' } })
  talk.emit('typing.started', { author: { kind: 'agent', displayName: 'Anna Keller' } })
  await page.locator('[data-service-widget] .typing').waitFor()

  const card = page.locator('[data-service-widget] .request')
  const file = ask('screenshot', { purpose: 'Ihr Warenkorb' })
  await card.waitFor()
  const picture = { name: 'page.png', mimeType: 'image/png', buffer: await page.screenshot() }
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), card.locator('.secondary').click()])
  await chooser.setFiles(picture)
  const preview = card.locator('canvas')
  await preview.waitFor()
  // The preview must have pixels of several colours. An empty canvas has one colour.
  const colors = await preview.evaluate(
    (canvas: {
      width: number
      height: number
      getContext(kind: '2d'): { getImageData(...area: number[]): { data: Uint8Array } }
    }) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size,
  )
  expect(colors).toBeGreaterThan(2)
  await card.locator('.primary:visible').click()
  await card.waitFor({ state: 'detached' })
  expect(gateway.features.uploads.get(file)).toEqual(picture.buffer)

  const shared = ask('screenshot')
  await card.waitFor()
  await card.locator('.primary:visible').click()
  await preview.waitFor()
  await card.locator('.primary:visible').click()
  await card.waitFor({ state: 'detached' })
  expect(gateway.features.commandState(shared)).toBe('uploaded')

  const navigation = ask('navigation', { url: `${new URL(page.url()).origin}/#offers`, label: 'Angebote' })
  await card.waitFor()
  await card.locator('.primary').click()
  await card.waitFor({ state: 'detached' })
  expect(gateway.features.commandState(navigation)).toBe('completed')

  await page.evaluate(`window.person = 'ada', widget.identify({ externalSubject: 'ada' })`)
  for (const locale of [...widgetLocales, 'de']) await page.evaluate(`widget.setLocale('${locale}')`)
  await field.waitFor()
  // The page's policy blocks only the agent's picture. The widget shows initials instead.
  expect(withoutLateRequests(complaints).filter((complaint) => !/anna\.png/.test(complaint))).toEqual([])
  const parts = ['chat', 'requests', 'forms', ...widgetLocales.slice(1)]
  expect(parts.filter((name) => !fetched.includes(name))).toEqual([])
})

it('the widget clears a partly filled form when another visitor signs in', async () => {
  const { page, complaints } = await visit()
  await page.evaluate(`window.person = 'ada'`)
  await button(page, /^Chat öffnen/).click()
  const email = page.getByLabel('E-Mail')
  await email.fill('ada@example.com')
  await page.getByLabel(/^Frage/).fill('Only for Ada')
  await page.evaluate(`window.person = 'bob', widget.identify({ externalSubject: 'bob' })`)
  await email.waitFor()
  await expect.poll(() => email.inputValue()).toBe('')
  expect(await page.getByLabel(/^Frage/).inputValue()).toBe('')
  // There are three sessions: the anonymous one, Ada's and Bob's. Each sign-in creates a session.
  expect(gateway.sessionCount('pk_friendly')).toBe(3)

  await email.fill('bob@example.com')
  await page.keyboard.press('Enter')
  await page.getByRole('textbox', { name: 'Ihre Nachricht' }).waitFor()
  expect(gateway.features.leads).toEqual([{ email: 'bob@example.com' }])
  expect(withoutLateRequests(complaints)).toEqual([])
})
