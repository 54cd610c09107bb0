import { beforeAll, describe, expect, it } from 'vitest'
import { consoleBrowser } from './test-console.ts'
import { checkViews, emptyViews, looks, views } from './view-checks.ts'

const browser = consoleBrowser(beforeAll)
const { core } = browser

// views.long.test.ts checks every view in all combinations of colour scheme and screen size. This
// test checks every third view.
const [light, , darkPhone] = looks

describe('a view', { timeout: 180_000 }, () => {
  it('has no accessibility or content security policy violations, light on desktop or dark on a phone', async () => {
    const empty = await browser.newCore()
    const isForPhone = (_: unknown, index: number) => index % 6 === 1
    const isForDesktop = (_: unknown, index: number) => index % 6 === 4
    expect(await checkViews(browser, core, views.filter(isForDesktop), [light])).toEqual([])
    expect(await checkViews(browser, core, views.filter(isForPhone), [darkPhone])).toEqual([])
    expect(await checkViews(browser, empty, emptyViews.filter(isForPhone), [light])).toEqual([])
    expect(await checkViews(browser, empty, emptyViews.filter(isForDesktop), [darkPhone])).toEqual([])
  })
})
