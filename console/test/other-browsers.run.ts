import { afterAll, describe, expect, test } from 'vitest'
import { faultsOfPage, howToInstall, otherBrowsers } from '../../test/support/other-browsers.ts'
import { until } from '../../test/support/until.ts'
import { consoleBrowser } from './test-console.ts'
import { views } from './view-checks.ts'

const { newDemoCore } = consoleBrowser()

for (const [name, start] of Object.entries(otherBrowsers)) {
  const browser = await start()
  if (!browser) {
    test.skip(`${name} is not installed: ${howToInstall}`, () => {})
    continue
  }
  describe(name, () => {
    afterAll(() => browser.close())

    test('no view has a fault at any size', async () => {
      const { url } = await newDemoCore()
      await browser.goto(`${url}/console/`)
      const signIn = { method: 'POST', body: JSON.stringify({ link: 'good', displayName: 'Ada' }) }
      await browser.evaluate(
        `fetch('/console/session/sign-in', ${JSON.stringify(signIn)}).then(({ status }) => status)`,
      )
      const found: string[] = []
      for (const [path, shown] of views) {
        await browser.goto(`${url}/console/${path}`)
        const fits = typeof shown === 'string' ? `.includes(${JSON.stringify(shown)})` : `.search(${shown}) >= 0`
        const isShown = `[...document.querySelectorAll('main *')].some((each) => each.textContent${fits})`
        await until(`${path} with ${shown}`, () => browser.evaluate(isShown))
        found.push(...(await faultsOfPage(browser)).map((fault) => `${path}, ${fault}`))
      }
      expect(found).toEqual([])
    })
  })
}
