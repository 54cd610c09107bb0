import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import { launchChromium } from '../support/chromium.ts'
import { openWidgetPage, type WidgetPage, type WidgetPageOptions } from '../support/widget-page.ts'

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

async function visit(options: Partial<WidgetPageOptions> = {}): Promise<Page> {
  const { context, ...rest } = options
  const visited = await openWidgetPage({ browser, gateway, context: { reducedMotion: 'reduce', ...context }, ...rest })
  opened.push(visited)
  return visited.page
}

/** What axe finds wrong with the widget as it stands, one line each. */
async function findings(page: Page): Promise<string[]> {
  const { violations, passes } = await new AxeBuilder({ page })
    .include('[data-service-widget]')
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    .analyze()
  expect(passes.length).toBeGreaterThan(5)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target} ${failureSummary}`),
  )
}

const colorOfSurface = `(() => {
  const host = document.querySelector('[data-service-widget]').shadowRoot
  const surface = host.querySelector('.panel:not([hidden])') ?? host.querySelector('.failed') ?? host.querySelector('.launcher')
  return getComputedStyle(surface).backgroundColor
})()`

/** In both colour schemes, which the view must really have two of. */
async function expectFlawless(page: Page, differs = true) {
  let light: unknown
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const color = () => page.evaluate(colorOfSurface)
    if (differs && light) await expect.poll(color).not.toBe(light)
    light ??= await color()
    expect(await findings(page), colorScheme).toEqual([])
  }
}

const inWidget = (page: Page, selector: string) => page.locator(`[data-service-widget] ${selector}`)

/** Serves with another configuration from now on. */
async function serve(config: Record<string, unknown>) {
  await gateway.close()
  gateway = await startScenarioServer({ heartbeatMs: 1_000, config })
}

const preChat = {
  fields: [
    { name: 'name', label: 'Your name', type: 'text', required: false, maxLength: 100 },
    { name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 },
    { name: 'question', label: 'What is it about?', type: 'textarea', required: false, maxLength: 500 },
  ],
}
const offline = { fields: [{ name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 }] }
const consent = { required: true, policyUrl: 'https://shop.example/privacy' }
const withPreChat = { capabilities: { preChatForm: true }, forms: { preChat }, consent }
const withOffline = { capabilities: { offlineForm: true }, forms: { offline }, availability: { online: false } }
const withRequests = { capabilities: { typing: true, navigation: true, screenshots: true } }

function ask(kind: 'navigation' | 'screenshot', about: Record<string, unknown> = {}): string {
  return gateway.features.request(gateway.conversation('pk_friendly'), kind, about)
}

async function asksForScreenshot(page: Page): Promise<string> {
  await open(page)
  const id = ask('screenshot', { purpose: 'To see what is in your basket' })
  await page.getByRole('heading', { name: /asks for a screenshot$/ }).waitFor()
  return id
}

async function choosePicture(page: Page, press: () => Promise<unknown>) {
  const buffer = await page.screenshot()
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), press()])
  await chooser.setFiles({ name: 'page.png', mimeType: 'image/png', buffer })
  await page.getByRole('button', { name: 'Send picture' }).waitFor()
}

interface View {
  siteKey?: 'pk_refused' | 'pk_rate_limited_long'
  config?: Record<string, unknown>
  /** The launcher has the installation's colour in both schemes. */
  isOneColor?: boolean
  show(page: Page): Promise<unknown>
}

const views: Record<string, View> = {
  launcher: { isOneColor: true, show: async () => {} },
  'empty panel': { show: open },
  conversation: {
    async show(page) {
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
  },
  'lines about agents, and one who types': {
    async show(page) {
      await open(page)
      await say(page, 'Do you ship to Graz?')
      await page.getByText(/· Sent$/).waitFor()
      const talk = gateway.conversation('pk_friendly')
      talk.emit('agent.assigned', { agent: { displayName: 'Anna Keller' } })
      talk.agentSays('We do.')
      talk.emit('conversation.closed')
      talk.emit('agent.unassigned', { agent: { displayName: 'Anna Keller' } })
      await page.getByText('Anna Keller has left this chat').waitFor()
      await page.getByText('This chat was marked as done.').waitFor()
      talk.emit('typing.started', { author: { kind: 'agent', displayName: 'Anna Keller' } })
      await inWidget(page, '.typing').waitFor()
    },
  },
  'failed message': {
    siteKey: 'pk_rate_limited_long',
    async show(page) {
      await open(page)
      await say(page, 'Please')
      await inWidget(page, '.retry').waitFor()
    },
  },
  'message that cannot be sent again': {
    siteKey: 'pk_refused',
    async show(page) {
      await open(page)
      await say(page, 'Please')
      await page.getByText('Not sent').waitFor()
    },
  },
  'ended session': {
    async show(page) {
      await open(page)
      gateway.endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
      await inWidget(page, '.again').waitFor()
    },
  },
  'no connection': {
    async show(page) {
      await open(page)
      await page.context().setOffline(true)
      await say(page, 'Are you there?')
      await inWidget(page, '.row[data-state="pending"], .row[data-state="retrying"]').waitFor()
    },
  },
  'chat that did not load': {
    isOneColor: true,
    async show(page) {
      await page.route(/\/widget\/chat-/, (route) => route.abort())
      await inWidget(page, '.launcher').click()
      await inWidget(page, '.failed').waitFor()
    },
  },
  'form before a chat': { config: withPreChat, show: openForm },
  'form with complaints': {
    config: withPreChat,
    async show(page) {
      await openForm(page)
      await page.getByLabel('Email address').fill('ada at example')
      await page.keyboard.press('Enter')
      await page.getByText('Please enter an email address').waitFor()
    },
  },
  'form that was not sent': {
    config: withPreChat,
    async show(page) {
      await openForm(page)
      gateway.features.failNext('/forms/', { status: 403, code: 'Forbidden', retryable: false })
      await page.getByLabel('Email address').fill('ada@example.com')
      await page.keyboard.press('Enter')
      await page.getByText('Your details were not sent. Please try again.').waitFor()
    },
  },
  'form that is being sent': {
    config: withPreChat,
    async show(page) {
      await openForm(page)
      gateway.features.hold('/forms/')
      await page.getByLabel('Email address').fill('ada@example.com')
      await page.keyboard.press('Enter')
      await inWidget(page, '.form-view [aria-disabled="true"]').waitFor()
    },
  },
  'form while nobody is there': { config: withOffline, show: openForm },
  'offer of the form while nobody is there': {
    config: withOffline,
    async show(page) {
      await openForm(page)
      await page.getByRole('button', { name: 'Write a message instead' }).click()
      await page.getByRole('button', { name: 'Leave your details instead' }).waitFor()
    },
  },
  'request to go to another page': {
    config: withRequests,
    async show(page) {
      await open(page)
      ask('navigation', { url: 'https://elsewhere.example/lamps/dune', label: 'The lamp Dune' })
      await page.getByText('The lamp Dune', { exact: true }).waitFor()
    },
  },
  'request for a screenshot': { config: withRequests, show: asksForScreenshot },
  'picture before it is sent': {
    config: withRequests,
    async show(page) {
      await asksForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
    },
  },
  'picture under way': {
    config: withRequests,
    async show(page) {
      await asksForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
      gateway.features.hold('upload')
      await page.getByRole('button', { name: 'Send picture' }).click()
      await page.getByRole('button', { name: 'Stop' }).waitFor()
    },
  },
  'picture that did not arrive': {
    config: withRequests,
    async show(page) {
      await asksForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
      gateway.features.failNext('acknowledgements', { status: 403, code: 'Forbidden', retryable: false })
      await page.getByRole('button', { name: 'Send picture' }).click()
      await inWidget(page, '.request .field-problem').waitFor()
    },
  },
}

async function openForm(page: Page) {
  await inWidget(page, '.launcher').click()
  await inWidget(page, '.form-view').waitFor()
  await inWidget(page, '.header[data-state="online"], .header[data-state="away"]').first().waitFor()
}

async function open(page: Page) {
  await inWidget(page, '.launcher').click()
  await inWidget(page, '.header[data-state="online"]').waitFor()
}

async function say(page: Page, text: string) {
  await inWidget(page, '.field').fill(text)
  await page.keyboard.press('Enter')
}

describe('axe finds nothing in light and dark', () => {
  it.each(Object.keys(views))('%s', async (name) => {
    const { siteKey, config, isOneColor, show } = views[name]!
    if (config) await serve(config)
    const page = await visit({ siteKey })
    await inWidget(page, '.launcher').waitFor()
    await show(page)
    await expectFlawless(page, !isOneColor)
  })

  it('conversation from right to left', async () => {
    const page = await visit({ lang: 'ar', dir: 'rtl' })
    await views.conversation!.show(page)
    await expectFlawless(page)
  })

  it.each(['de', 'es', 'fr', 'ja', 'ar'])('form and request in %s', async (lang) => {
    await serve({ ...withRequests, ...withPreChat, capabilities: { ...withRequests.capabilities, preChatForm: true } })
    const page = await visit({ lang })
    await openForm(page)
    ask('navigation', { url: 'https://elsewhere.example/lamps/dune', label: 'Dune' })
    await inWidget(page, '.request').waitFor()
    await expectFlawless(page)
  })

  it('would tell of a flaw', async () => {
    const page = await visit()
    await open(page)
    await inWidget(page, '.field').evaluate((field) => field.removeAttribute('aria-label'))
    await inWidget(page, '.field').evaluate((field) => field.removeAttribute('placeholder'))
    expect((await findings(page)).join()).toMatch(/label/)
  })
})

it.each(['#ffeb3b', '#000000', '#ffffff', '#888888', '#ff0000'])(
  'axe finds nothing with the accent colour %s',
  async (accentColor) => {
    await gateway.close()
    gateway = await startScenarioServer({ heartbeatMs: 1_000, config: withRequests, appearance: { accentColor } })
    const page = await visit()
    await views.conversation!.show(page)
    ask('screenshot')
    await inWidget(page, '.request').waitFor()
    await expectFlawless(page)
  },
)

describe('without a mouse', () => {
  const focused = (page: Page) =>
    page.evaluate(`(() => {
      const inside = document.activeElement.shadowRoot?.activeElement
      if (!inside) return document.activeElement.tagName
      return inside.getAttribute('aria-label') || inside.labels?.[0]?.textContent || inside.textContent
    })()`)

  it('every control of the chat is reached by Tab, in the order it is seen, and left again', async () => {
    const page = await visit({ siteKey: 'pk_rate_limited_long', body: '<a href="#x">Before</a>' })
    await inWidget(page, '.launcher').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Open chat')
    await page.keyboard.press('Enter')
    await inWidget(page, '.header[data-state="online"]').waitFor()
    expect(await focused(page)).toBe('Your message')
    await page.keyboard.type('Please')
    await page.keyboard.press('Enter')
    await inWidget(page, '.retry').waitFor()
    await page.keyboard.type('More')

    const back: unknown[] = []
    for (let count = 0; count < 4; count += 1) {
      await page.keyboard.press('Shift+Tab')
      back.push(await focused(page))
    }
    expect(back).toEqual(['Retry', 'Conversation', 'Close chat', 'Close chat'])
    for (let count = 0; count < 5; count += 1) await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Send message')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('BODY')
  })

  it('the focus goes round inside a panel that fills the screen, and Escape gives it back', async () => {
    const page = await visit({ context: { viewport: { width: 390, height: 844 } } })
    await inWidget(page, '.launcher').focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Nordlicht Support' })
    await dialog.waitFor()
    expect(await dialog.getAttribute('aria-modal')).toBe('true')
    await page.getByText('We are online').waitFor()
    const seen = new Set<unknown>()
    for (let count = 0; count < 8; count += 1) {
      await page.keyboard.press('Tab')
      seen.add(await focused(page))
    }
    expect([...seen].sort()).toEqual(['Close chat', 'Conversation', 'Send message', 'Your message'])
    await page.keyboard.press('Shift+Tab')
    expect(seen.has(await focused(page))).toBe(true)
    await page.keyboard.press('Escape')
    expect(await focused(page)).toBe('Open chat')
  })

  /** Presses Tab, or Shift+Tab, until the focus is where it is wanted. */
  async function reach(page: Page, name: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab') {
    const passed: unknown[] = []
    for (let presses = 0; presses < 15; presses += 1) {
      await page.keyboard.press(key)
      passed.push(await focused(page))
      if (name.test(String(passed.at(-1)))) return
    }
    throw new Error(`${name} was not reached; the focus went over ${passed.join(', ')}`)
  }

  it('a failed message is sent again, and the focus is not lost with the button', async () => {
    const page = await visit({ siteKey: 'pk_rate_limited_long' })
    await open(page)
    await page.keyboard.type('Please')
    await page.keyboard.press('Enter')
    await inWidget(page, '.retry').waitFor()
    await reach(page, /^Retry$/, 'Shift+Tab')
    gateway.conversation('pk_rate_limited_long').agentSays('Are you there?')
    await page.getByText('Are you there?').waitFor()
    expect(await focused(page)).toBe('Retry')
    await page.keyboard.press('Enter')
    await page.getByText(/· Sent$/).waitFor()
    expect(await focused(page)).toBe('Conversation')
    await reach(page, /^Your message$/)
    expect(gateway.conversation('pk_rate_limited_long').messages.map(({ body }) => body)).toContain('Please')
  })

  it('the newest message is gone to, and the focus stays in the conversation', async () => {
    const page = await visit()
    await views.conversation!.show(page)
    await inWidget(page, '.field').focus()
    await reach(page, /newest|latest/i, 'Shift+Tab')
    await page.keyboard.press('Enter')
    await inWidget(page, '.jump').waitFor({ state: 'hidden' })
    expect(await focused(page)).toBe('Conversation')
  })

  it('a form is filled in, complained of, corrected and sent, and the visitor goes on writing', async () => {
    await serve(withPreChat)
    const page = await visit()
    await inWidget(page, '.launcher').focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your name (optional)')
    await page.keyboard.type('Ada')
    await reach(page, /^Email address$/)
    await page.keyboard.type('ada at')
    await reach(page, /^What is it about/)
    await page.keyboard.type('Lamps')
    await reach(page, /^Privacy policy/)
    await reach(page, /^Start chat$/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Email address')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('ada@example.com')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your message')
    expect(gateway.features.leads).toEqual([{ name: 'Ada', email: 'ada@example.com', question: 'Lamps' }])
  })

  it('the form while nobody is there is left for a message, and come back to', async () => {
    await serve(withOffline)
    const page = await visit()
    await inWidget(page, '.launcher').focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Email address')
    await reach(page, /^Write a message instead$/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your message')
    await reach(page, /^Leave your details instead$/, 'Shift+Tab')
    await page.keyboard.press('Space')
    await expect.poll(() => focused(page)).toBe('Email address')
    await page.keyboard.type('ada@example.com')
    await reach(page, /^Send details$/)
    await page.keyboard.press('Space')
    await expect.poll(() => focused(page)).toBe('Your message')
    expect(gateway.features.leads).toEqual([{ email: 'ada@example.com' }])
  })

  it('a picture is chosen, thrown away, chosen again, stopped on its way, and sent', async () => {
    await serve(withRequests)
    const page = await visit()
    const id = await asksForScreenshot(page)
    await inWidget(page, '.field').focus()
    await reach(page, /^Share screen$/, 'Shift+Tab')
    await reach(page, /^Choose a picture$/)
    await choosePicture(page, () => page.keyboard.press('Enter'))
    expect(await focused(page)).toBe('Send picture')
    await reach(page, /^Discard$/)
    await page.keyboard.press('Enter')
    expect(await focused(page)).toBe('Share screen')
    await reach(page, /^Choose a picture$/)
    await choosePicture(page, () => page.keyboard.press('Space'))
    const release = gateway.features.hold('acknowledgements')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Stop')
    await page.keyboard.press('Enter')
    release()
    await expect.poll(() => focused(page)).toBe('Send picture')
    expect(gateway.features.uploads.size).toBe(0)
    await page.keyboard.press('Enter')
    await page.getByText('You sent a screenshot.').waitFor()
    expect(await focused(page)).toBe('Your message')
    expect(gateway.features.commandState(id)).toBe('uploaded')
  })

  it.each(['navigation', 'screenshot'] as const)('a request (%s) is declined, and the focus goes on', async (kind) => {
    await serve(withRequests)
    const page = await visit()
    await open(page)
    const id = ask(kind, { url: 'https://elsewhere.example/' })
    await page.getByRole('button', { name: 'No thanks' }).waitFor()
    await reach(page, /^No thanks$/, 'Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'No thanks' }).waitFor({ state: 'detached' })
    await expect.poll(() => focused(page)).toBe('Your message')
    expect(gateway.features.commandState(id)).toMatch(/^(declined|denied)$/)
  })

  it('a chat that has ended is begun anew', async () => {
    const page = await visit()
    await views['ended session']!.show(page)
    await inWidget(page, '.scroller').focus()
    await reach(page, /^Start a new chat$/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your message')
    expect(gateway.sessionCount('pk_friendly')).toBe(2)
  })
})

describe('on any screen', () => {
  const overflow = `(() => {
    const panel = document.querySelector('[data-service-widget]').shadowRoot.querySelector('.panel').getBoundingClientRect()
    return { inside: panel.left >= 0 && panel.top >= 0 && panel.right <= innerWidth && panel.bottom <= innerHeight,
      wide: document.documentElement.scrollWidth > innerWidth }
  })()`

  it.each([
    ['at 200 % of a laptop', { width: 640, height: 400 }],
    ['at 400 % of a laptop', { width: 320, height: 256 }],
    ['on a small phone', { width: 320, height: 568 }],
    ['on a tablet', { width: 820, height: 1180 }],
  ])('%s all of the panel is in sight', async (_name, viewport) => {
    const page = await visit({ context: { viewport }, lang: 'de' })
    await open(page)
    await say(page, `${'Donaudampfschifffahrt'.repeat(12)} https://shop.example/${'a'.repeat(200)}`)
    await inWidget(page, '.row').waitFor()
    expect(await page.evaluate(overflow)).toEqual({ inside: true, wide: false })
    expect((await inWidget(page, '.field').boundingBox())!.height).toBeGreaterThan(24)
    expect(await findings(page)).toEqual([])
  })
})
