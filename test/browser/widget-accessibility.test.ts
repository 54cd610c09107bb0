import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import {
  choosePicture,
  inWidget,
  open,
  openForm,
  say,
  useWidget,
  withOffline,
  withPreChat,
  withRequests,
} from './widget-under-test.ts'

const { gateway, serve, visit, ask, askForScreenshot, showLongConversation, showEndedSession } = useWidget()

/** What axe finds on the whole host page, which has landmarks of its own. */
async function findings(page: Page): Promise<string[]> {
  const { violations, passes } = await new AxeBuilder({ page })
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
  conversation: { show: showLongConversation },
  'lines about agents, and one who types': {
    async show(page) {
      await open(page)
      await say(page, 'Do you ship to Graz?')
      await page.getByText(/· Sent$/).waitFor()
      const talk = gateway().conversation('pk_friendly')
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
  'ended session': { show: showEndedSession },
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
      gateway().features.failNext('/forms/', { status: 403, code: 'Forbidden', retryable: false })
      await page.getByLabel('Email address').fill('ada@example.com')
      await page.keyboard.press('Enter')
      await page.getByText('Your details were not sent. Please try again.').waitFor()
    },
  },
  'form that is being sent': {
    config: withPreChat,
    async show(page) {
      await openForm(page)
      gateway().features.hold('/forms/')
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
  'request for a screenshot': { config: withRequests, show: askForScreenshot },
  'picture before it is sent': {
    config: withRequests,
    async show(page) {
      await askForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
    },
  },
  'picture under way': {
    config: withRequests,
    async show(page) {
      await askForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
      gateway().features.hold('upload')
      await page.getByRole('button', { name: 'Send picture' }).click()
      await page.getByRole('button', { name: 'Stop' }).waitFor()
    },
  },
  'picture that did not arrive': {
    config: withRequests,
    async show(page) {
      await askForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
      gateway().features.failNext('acknowledgements', { status: 403, code: 'Forbidden', retryable: false })
      await page.getByRole('button', { name: 'Send picture' }).click()
      await inWidget(page, '.request .field-problem').waitFor()
    },
  },
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
    await showLongConversation(page)
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

  it('reports a violation (check of the test itself)', async () => {
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
    await serve(withRequests, { accentColor })
    const page = await visit()
    await showLongConversation(page)
    ask('screenshot')
    await inWidget(page, '.request').waitFor()
    await expectFlawless(page)
  },
)

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
