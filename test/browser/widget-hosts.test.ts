import { afterAll, beforeAll, it } from 'vitest'
import { sharedChromium } from '../support/chromium.ts'
import { isLong, someOf } from '../support/is-long.ts'
import { howToInstall, otherBrowsers } from '../support/other-browsers.ts'
import { hostPages, startHostSite } from './host-pages.ts'

let site: Awaited<ReturnType<typeof startHostSite>>
beforeAll(async () => {
  site = await startHostSite()
})
afterAll(() => site.close())

const names = Object.keys(hostPages)

it.each(someOf(names, 1))('in Chromium, a visitor chats on %s', async (name) => {
  const browser = await sharedChromium()
  const context = await browser.newContext()
  const page = await context.newPage()
  await site.visit(name, { goto: (url) => page.goto(url), evaluate: (expression) => page.evaluate(expression) })
  await context.close()
})

const firefox = isLong ? await otherBrowsers.Firefox!() : undefined
afterAll(() => firefox?.close())

if (firefox) it.each(names)('in Firefox, a visitor chats on %s', (name) => site.visit(name, firefox))
else it.skipIf(isLong)(`in Firefox, a visitor chats on each page: ${howToInstall}`, () => {})
