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

/** What axe finds wrong on the page as it stands, one line each. */
async function findings(page: Page): Promise<string[]> {
  const { violations, passes } = await new AxeBuilder({ page })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    .analyze()
  expect(passes.length).toBeGreaterThan(5)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target} ${failureSummary}`),
  )
}

const inWidget = (page: Page, selector: string) => page.locator(`[data-service-widget] ${selector}`)

const views: Record<string, { siteKey?: 'pk_refused' | 'pk_rate_limited_long'; show(page: Page): Promise<void> }> = {
  launcher: { show: async () => {} },
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
  'failed message': {
    siteKey: 'pk_rate_limited_long',
    async show(page) {
      await open(page)
      await say(page, 'Please')
      await inWidget(page, '.retry').waitFor()
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
    async show(page) {
      await page.route(/\/widget\/chat-/, (route) => route.abort())
      await inWidget(page, '.launcher').click()
      await inWidget(page, '.failed').waitFor()
    },
  },
}

async function open(page: Page) {
  await inWidget(page, '.launcher').click()
  await inWidget(page, '.header[data-state="online"]').waitFor()
}

async function say(page: Page, text: string) {
  await inWidget(page, '.field').fill(text)
  await page.keyboard.press('Enter')
}

describe.each(['light', 'dark'] as const)('axe finds nothing, %s', (colorScheme) => {
  it.each(Object.keys(views))('%s', async (name) => {
    const { siteKey, show } = views[name]!
    const page = await visit({ siteKey, context: { colorScheme } })
    await inWidget(page, '.launcher').waitFor()
    await show(page)
    expect(await findings(page)).toEqual([])
  })

  it('conversation from right to left', async () => {
    const page = await visit({ lang: 'ar', dir: 'rtl', context: { colorScheme } })
    await views.conversation!.show(page)
    expect(await findings(page)).toEqual([])
  })
})

it.each(['de', 'es', 'fr', 'ja'])('axe finds nothing in %s', async (lang) => {
  const page = await visit({ lang })
  await views['empty panel']!.show(page)
  expect(await findings(page)).toEqual([])
})

it.each([
  ['#ffeb3b', 'light'],
  ['#000000', 'dark'],
  ['#ffffff', 'dark'],
  ['#888888', 'light'],
  ['#ff0000', 'light'],
] as const)('axe finds nothing with the accent colour %s, %s', async (accentColor, colorScheme) => {
  await gateway.close()
  gateway = await startScenarioServer({ heartbeatMs: 1_000, appearance: { accentColor } })
  const page = await visit({ context: { colorScheme } })
  await views.conversation!.show(page)
  expect(await findings(page)).toEqual([])
})

describe('without a mouse', () => {
  const focused = (page: Page) =>
    page.evaluate(`(() => {
      const inside = document.activeElement.shadowRoot?.activeElement
      return inside ? inside.getAttribute('aria-label') || inside.textContent : document.activeElement.tagName
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
