import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, it } from 'vitest'
import { viewsOf } from './accessibility-views.ts'
import { inWidget, open, say, useWidget } from './widget-under-test.ts'

const widget = useWidget()
const { gateway, serve, visit } = widget

/** Runs code in the page. `root` is the root of the widget's elements. */
const inRoot = (page: Page, code: string) =>
  page.evaluate(`(() => { const root = document.querySelector('[data-service-widget]').shadowRoot; ${code} })()`)

/** Focuses each visible control like the keyboard does. Returns those without a visible ring. */
async function withoutRing(page: Page): Promise<unknown> {
  await page.locator('[data-service-widget] button').first().waitFor({ state: 'attached' })
  await page.keyboard.press('Tab')
  return inRoot(
    page,
    `const before = root.activeElement
    const controls = [...root.querySelectorAll('button, a[href], input, textarea, [tabindex="0"]')]
      .filter((one) => one.checkVisibility() && getComputedStyle(one).visibility === 'visible')
    const bare = controls.filter((one) => {
      one.focus()
      if (root.activeElement !== one) return false
      const ring = getComputedStyle(one.closest('.entry') && one.localName === 'textarea' ? one.closest('.entry') : one)
      return ring.outlineStyle === 'none' || parseFloat(ring.outlineWidth) < 1
    })
    before?.focus()
    return controls.length === 0 ? 'no control' : bare.map((one) => one.className || one.outerHTML)`,
  )
}

describe('the focus ring', () => {
  it.each(Object.entries(viewsOf(widget)))(
    'is drawn on each control of this view, in both themes and in forced colours: %s',
    async (_name, { siteKey, config, show }) => {
      if (config) await serve(config)
      const page = await visit({ siteKey })
      await show(page)
      for (const media of [
        { colorScheme: 'light', forcedColors: 'none' },
        { colorScheme: 'dark', forcedColors: 'none' },
        { colorScheme: 'light', forcedColors: 'active' },
      ] as const) {
        await page.emulateMedia(media)
        expect(await withoutRing(page), JSON.stringify(media)).toEqual([])
      }
    },
  )
})

describe('an accent colour like the background', () => {
  it.each([
    ['white', '#ffffff', 'light', true],
    ['almost black', '#16181d', 'dark', true],
    ['almost black', '#16181d', 'light', false],
    ['blue', '#2554d6', 'dark', false],
  ] as const)('of %s (%s, %s) gets a hairline: %s', async (_name, accentColor, colorScheme, hasLine) => {
    await serve({}, { accentColor })
    const page = await visit({ context: { colorScheme } })
    await open(page)
    await say(page, 'Do you ship to Graz?')
    await page.getByText(/· Sent$/).waitFor()
    await inWidget(page, '.field').fill('And')
    for (const part of ['[data-author="visitor"] .bubble', '.header', '.send'])
      expect(
        await inRoot(
          page,
          `const { boxShadow } = getComputedStyle(root.querySelector('${part}'))
          return /rgb\\((134, 141, 155|125, 132, 147)\\)/.test(boxShadow)`,
        ),
        part,
      ).toBe(hasLine)
  })
})

describe('a page that would hide the launcher', () => {
  const isOnTop = (page: Page) =>
    inRoot(
      page,
      `const { left, top, width, height } = root.querySelector('.launcher').getBoundingClientRect()
      const [x, y] = [left + width / 2, top + height / 2]
      return top > 0 && top < innerHeight && document.elementFromPoint(x, y) === root.host`,
    )

  it.each([
    ['transforms its body', 'body { transform: translateZ(0); height: 4000px }'],
    ['filters its body', 'body { filter: grayscale(1); height: 4000px }'],
    [
      'has an element with the highest z-index',
      'main { position: fixed; inset: 0; z-index: 2147483647; background: white } body { height: 4000px }',
    ],
  ])('and %s shows it at its place, also scrolled, and the panel', async (_name, css) => {
    const page = await visit({ head: `<style>${css}</style>`, body: '<main>A shop</main>' })
    await inWidget(page, '.launcher').waitFor()
    expect(await isOnTop(page)).toBe(true)
    await page.evaluate('scrollTo(0, 2000)')
    expect(await isOnTop(page)).toBe(true)
    await open(page)
    await inWidget(page, '.field').fill('Hello')
    await page.keyboard.press('Enter')
    await page.getByText(/· Sent$/).waitFor()
  })
})

it('the panel fits into a page that zooms its root element', async () => {
  const page = await visit({
    head: '<style>html { zoom: 1.5 }</style>',
    context: { viewport: { width: 1280, height: 800 } },
  })
  await open(page)
  const { x, y, width, height } = (await inWidget(page, '.panel').boundingBox())!
  expect(Math.min(x, y)).toBeGreaterThan(0)
  expect(x + width).toBeLessThan(1280)
  expect(y + height).toBeLessThan(800)
  expect(width).toBe(576)
})

describe('forced colours', () => {
  beforeEach(() => serve({ capabilities: { typing: true } }))

  it('draw a border around bubbles, and none around lines of the system', async () => {
    const page = await visit({ context: { forcedColors: 'active' } })
    await open(page)
    await say(page, 'Do you ship to Graz?')
    gateway()
      .conversation('pk_friendly')
      .emit('agent.assigned', { agent: { displayName: 'Anna Keller' } })
    await page.getByText('Anna Keller joined the chat').waitFor()
    const borders = (author: string) =>
      inRoot(page, `return getComputedStyle(root.querySelector('[data-author="${author}"] .bubble')).borderTopWidth`)
    expect(await borders('visitor')).toBe('1px')
    expect(await borders('system')).toBe('0px')
  })
})
