import { beforeAll, describe, expect, it } from 'vitest'
import { consoleBrowser } from './test-console.ts'
import { checkViews, emptyViews, looks, views } from './view-checks.ts'

const browser = consoleBrowser(beforeAll)
const { core } = browser

describe('every view, light and dark, on desktop and phone', () => {
  it('every view shows its content without accessibility or content security policy violations', async () => {
    expect(await checkViews(browser, core, views, looks)).toEqual([])
  })

  it('every view of an empty workspace shows a placeholder and breaks no accessibility rule', async () => {
    expect(await checkViews(browser, await browser.newCore(), emptyViews, looks)).toEqual([])
  })
})
