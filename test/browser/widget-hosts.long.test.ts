import { afterAll, it } from 'vitest'
import { sharedChromium } from '../support/chromium.ts'
import { isLong, someOf } from '../support/is-long.ts'
import { howToInstall, otherBrowsers } from '../support/other-browsers.ts'
import { hostPages } from './host-pages.ts'
import { visitHostPage } from './host-visit.ts'

const names = Object.keys(hostPages)

it.each(someOf(names, 1))('in Chromium, a visitor chats on %s', async (name) => {
  const browser = await sharedChromium()
  const context = await browser.newContext()
  const page = await context.newPage()
  await visitHostPage(name, { goto: (url) => page.goto(url), evaluate: (expression) => page.evaluate(expression) })
  await context.close()
})

const firefox = isLong ? await otherBrowsers.Firefox!() : undefined
afterAll(() => firefox?.close())

if (firefox) it.each(names)('in Firefox, a visitor chats on %s', (name) => visitHostPage(name, firefox))
else it.skipIf(isLong)(`in Firefox, a visitor chats on each page: ${howToInstall}`, () => {})
