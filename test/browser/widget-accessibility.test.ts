import { expect, it } from 'vitest'
import { itLong, someOf } from '../support/is-long.ts'
import { expectFlawlessView, findings, viewsOf } from './accessibility-views.ts'
import { inWidget, open, useWidget } from './widget-under-test.ts'

const widget = useWidget()
const views = viewsOf(widget)

// widget-accessibility.long.test.ts checks all views, languages and colours.
it.each(someOf(['conversation', 'form with invalid fields'], 1))(
  'axe finds no violation in light and dark in the view “%s”',
  async (name) => void (await expectFlawlessView(widget, views[name]!)),
)

itLong('axe finds a missing label (check of the test itself)', async () => {
  const page = await widget.visit()
  await open(page)
  await inWidget(page, '.field').evaluate((field) => field.removeAttribute('aria-label'))
  await inWidget(page, '.field').evaluate((field) => field.removeAttribute('placeholder'))
  expect((await findings(page)).join()).toMatch(/label/)
})
