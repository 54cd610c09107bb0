import { beforeAll, describe, expect, it } from 'vitest'
import type { FakeCore } from './fake-core.ts'
import { consoleBrowser } from './test-console.ts'
import { checkViews, emptyViews, looks, views } from './view-checks.ts'

const browser = consoleBrowser()
let core: FakeCore
let empty: FakeCore
beforeAll(async () => {
  core = await browser.newDemoCore()
  empty = await browser.newCore()
})

// views.long.test.ts checks every view in all combinations of colour scheme and screen size. This
// test checks every third view.
const [light, , darkPhone] = looks

describe('a view', { timeout: 180_000 }, () => {
  it('has no accessibility or content security policy violations, light on desktop or dark on a phone', async () => {
    const isForPhone = (_: unknown, index: number) => index % 6 === 1
    const isForDesktop = (_: unknown, index: number) => index % 6 === 4
    const none = { found: [], complaints: [] }
    expect(await checkViews(browser, core, views.filter(isForDesktop), [light])).toEqual(none)
    expect(await checkViews(browser, core, views.filter(isForPhone), [darkPhone])).toEqual(none)
    expect(await checkViews(browser, empty, emptyViews.filter(isForPhone), [light])).toEqual(none)
    expect(await checkViews(browser, empty, emptyViews.filter(isForDesktop), [darkPhone])).toEqual(none)
  })
})
