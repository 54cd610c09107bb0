import { beforeAll, describe, expect, it } from 'vitest'
import { addDemoData } from './demo-data.ts'
import type { FakeCore } from './fake-core.ts'
import { consoleBrowser } from './test-console.ts'
import { checkViews, emptyViews, looks, views } from './view-checks.ts'

const browser = consoleBrowser()
let core: FakeCore
let empty: FakeCore
beforeAll(async () => {
  core = await browser.newCore()
  await addDemoData(core)
  empty = await browser.newCore()
})

// The other combinations of colour scheme and screen size are checked in views.long.test.ts.
const shortLooks = looks.filter(({ name }) => name === 'light' || name === 'dark on a phone')

describe('every view, light on desktop and dark on a phone', { timeout: 180_000 }, () => {
  it('every view shows its content without accessibility or content security policy violations', async () => {
    expect(await checkViews(browser, core, views, shortLooks)).toEqual({ found: [], complaints: [] })
  })

  it('every view of an empty workspace shows a placeholder without violations', async () => {
    expect(await checkViews(browser, empty, emptyViews, shortLooks)).toEqual({ found: [], complaints: [] })
  })
})
