import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { widgetLocales } from '../../contract/widget-locales.ts'
import { inWidget, open, openForm, say, useWidget, withPreChat, withRequests } from './widget-under-test.ts'

const { gateway, serve, visit, ask, showEndedSession } = useWidget()

/** Returns the elements of the panel whose text is wider than its place, or that reach out of the panel. */
const outOfPlace = `(() => {
  const panel = document.querySelector('[data-service-widget]').shadowRoot.querySelector('.panel')
  const { left, right } = panel.getBoundingClientRect()
  return [...panel.querySelectorAll('*')].flatMap((element) => {
    const box = element.getBoundingClientRect()
    const style = getComputedStyle(element)
    // Texts for screen readers have a place of one pixel.
    if (box.width <= 1 || box.height <= 1 || /^(inline|contents)$/.test(style.display) || /scroller|list/.test(element.className) || element.closest('svg')) return []
    const wide = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0 && style.overflowX !== 'auto'
    return wide || box.left < left - 1 || box.right > right + 1 ? [element.className + ': ' + element.textContent] : []
  })
})()`

const views: Record<string, { config: Record<string, unknown>; show(page: Page): Promise<unknown> }> = {
  'a form': { config: withPreChat, show: openForm },
  'an ended chat': { config: withRequests, show: showEndedSession },
  'a question for a page': {
    config: withRequests,
    async show(page) {
      await open(page)
      await say(page, 'Graz?')
      ask('navigation', { url: 'https://elsewhere.example/lamps/dune', label: 'Dune' })
      await inWidget(page, '.request').waitFor()
    },
  },
  'a question for a screenshot': {
    config: withRequests,
    async show(page) {
      await open(page)
      ask('screenshot', { purpose: 'Dune' })
      await inWidget(page, '.request').waitFor()
    },
  },
  'a rating': {
    config: { capabilities: { rating: true } },
    async show(page) {
      await open(page)
      await say(page, 'Graz?')
      const talk = gateway().conversation('pk_friendly')
      talk.agentSays('We do.')
      talk.emit('conversation.closed')
      talk.emit('rating.requested')
      await page.getByRole('button', { name: 'Good', exact: true }).click()
    },
  },
}

async function translate(page: Page, locale: string) {
  await page.evaluate(
    `document.querySelector('script[data-site-key]').serviceWidget.load().then((widget) => widget.setLocale('${locale}'))`,
  )
  await inWidget(page, `[lang="${locale}"] .panel`).waitFor()
}

it.each(Object.entries(views))('no text breaks its place at 320 px in any language in %s', async (_name, view) => {
  await serve(view.config)
  const page = await visit({ context: { viewport: { width: 320, height: 568 } } })
  await view.show(page)
  const found: Record<string, unknown> = {}
  for (const locale of widgetLocales) {
    await translate(page, locale)
    const broken = await page.evaluate<string[]>(outOfPlace)
    if (broken.length > 0) found[locale] = broken
  }
  expect(found).toEqual({})
})

/** The spacing of WCAG 1.4.12. */
const wideSpacing = `(() => {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }')
  document.querySelector('[data-service-widget]').shadowRoot.adoptedStyleSheets.push(sheet)
})()`

it.each(Object.entries(views))(
  'no text breaks its place at 320 px with wide text spacing in %s',
  async (_name, view) => {
    await serve(view.config)
    const page = await visit({ context: { viewport: { width: 320, height: 568 } } })
    await view.show(page)
    await translate(page, 'de')
    await page.evaluate(wideSpacing)
    expect(await page.evaluate<string[]>(outOfPlace)).toEqual([])
  },
)
