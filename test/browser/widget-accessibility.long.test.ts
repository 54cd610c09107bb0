import { describe, expect, it } from 'vitest'
import { widgetLocales } from '../../contract/widget-locales.ts'
import {
  expectFlawless,
  expectFlawlessRightToLeft,
  expectFlawlessView,
  findings,
  viewsOf,
} from './accessibility-views.ts'
import { inWidget, open, openForm, say, useWidget, withPreChat, withRequests } from './widget-under-test.ts'

const widget = useWidget()
const { serve, visit, ask, showLongConversation } = widget

describe('the widget in light and dark', () => {
  it.each(Object.entries(viewsOf(widget)))('has no accessibility violation in the view “%s”', async (_name, view) => {
    await expectFlawlessRightToLeft(await expectFlawlessView(widget, view))
  })

  it('has no accessibility violation in a conversation with a right-to-left language', async () => {
    const page = await visit({ lang: 'ar', dir: 'rtl' })
    await showLongConversation(page)
    await expectFlawless(page)
  })

  it.each(widgetLocales)(
    'has no accessibility violation in the form and in a navigation request in the language %s',
    async (lang) => {
      await serve({
        ...withRequests,
        ...withPreChat,
        capabilities: { ...withRequests.capabilities, preChatForm: true },
      })
      const page = await visit({ lang })
      await openForm(page)
      ask('navigation', { url: 'https://elsewhere.example/lamps/dune', label: 'Dune' })
      await inWidget(page, '.request').waitFor()
      await expectFlawless(page)
    },
  )
})

it.each(['#ffeb3b', '#000000', '#ffffff', '#888888', '#ff0000'])(
  'the widget has no accessibility violation with the accent colour %s',
  async (accentColor) => {
    await serve(withRequests, { accentColor })
    const page = await visit()
    await showLongConversation(page)
    ask('screenshot')
    await inWidget(page, '.request').waitFor()
    await expectFlawless(page)
  },
)

describe('the panel', () => {
  const overflow = `(() => {
    const panel = document.querySelector('[data-service-widget]').shadowRoot.querySelector('.panel').getBoundingClientRect()
    return { inside: panel.left >= 0 && panel.top >= 0 && panel.right <= innerWidth && panel.bottom <= innerHeight,
      wide: document.documentElement.scrollWidth > innerWidth }
  })()`

  it.each([
    ['at 200 % zoom on a laptop', { width: 640, height: 400 }],
    ['at 400 % zoom on a laptop', { width: 320, height: 256 }],
    ['on a small phone', { width: 320, height: 568 }],
    ['on a tablet', { width: 820, height: 1180 }],
  ])('is completely visible %s', async (_name, viewport) => {
    const page = await visit({ context: { viewport }, lang: 'de' })
    await open(page)
    await say(page, `${'Donaudampfschifffahrt'.repeat(12)} https://shop.example/${'a'.repeat(200)}`)
    await inWidget(page, '.row').waitFor()
    expect(await page.evaluate(overflow)).toEqual({ inside: true, wide: false })
    expect((await inWidget(page, '.field').boundingBox())!.height).toBeGreaterThan(24)
    expect(await findings(page)).toEqual([])
  })
})
