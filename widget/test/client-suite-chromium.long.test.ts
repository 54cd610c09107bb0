import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedChromium } from '../../test/support/chromium.ts'
import { atFileEnd } from '../../test/support/clean-up.ts'
import { clientSuite } from './client-suite.ts'
import { startPageSite } from './page-site.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'

let page: Page
let server: ScenarioServer
let site: Awaited<ReturnType<typeof startPageSite>>

beforeAll(async () => {
  site = await startPageSite('client-suite-page.ts')
  server = await startScenarioServer()
  atFileEnd(async () => {
    await server.close()
    site.close()
  })
  const browser = await sharedChromium()
  page = await browser.newPage()
  await page.goto(site.url)
})

describe('the headless client, in Chromium', () => {
  it.each(Object.keys(clientSuite))('%s', async (name) => {
    const run = `window.runScenario(${JSON.stringify(name)}, ${JSON.stringify(server.url)})`
    expect(await page.evaluate(run)).toBe('done')
  })

  it('the headless client writes to session storage only', async () => {
    expect(await page.evaluate('[localStorage.length, document.cookie]')).toEqual([0, ''])
  })
})
