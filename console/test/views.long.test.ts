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

describe('every view, light and dark, on desktop and phone', () => {
  it('every view shows its content without accessibility or content security policy violations', async () => {
    expect(await checkViews(browser, core, views, looks)).toEqual({ found: [], complaints: [] })
  })

  it('every view of an empty workspace shows a placeholder and breaks no accessibility rule', async () => {
    expect(await checkViews(browser, empty, emptyViews, looks)).toEqual({ found: [], complaints: [] })
  })
})
