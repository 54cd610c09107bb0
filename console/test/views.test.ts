import { beforeAll, expect, it } from 'vitest'
import { isLong, someOf } from '../../test/support/is-long.ts'
import { consoleBrowser } from './test-console.ts'
import { checkViews, emptyViews, looks, views } from './view-checks.ts'

const browser = consoleBrowser(beforeAll)
// `npm test` checks one view, in one colour scheme and screen size.
const chosen = isLong ? looks : looks.slice(0, 1)

it('every view shows its content without accessibility or content security policy violations', async () => {
  expect(await checkViews(browser, browser.core, someOf(views, 1), chosen)).toEqual([])
})

it('every view of an empty workspace shows a placeholder and breaks no accessibility rule', async () => {
  expect(await checkViews(browser, await browser.newCore(), someOf(emptyViews, 1), chosen)).toEqual([])
})
