import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { type PinnedLoader, widgetDist } from '../../widget/build.ts'
import { itLong } from '../support/is-long.ts'
import { inWidget, useWidgetPages, withRequests } from './widget-under-test.ts'

const { gateway, visit } = useWidgetPages(withRequests)
let pinned: PinnedLoader

beforeAll(async () => {
  pinned = JSON.parse(await readFile(join(widgetDist, 'widget.json'), 'utf8'))
})

const pin = () => ({ script: pinned.path, attributes: `integrity="${pinned.integrity}" crossorigin="anonymous"` })
const launcher = (page: Page) => page.getByRole('button', { name: /^Open chat/ })
const untilOnline = (page: Page) => inWidget(page, '.header[data-state="online"]').waitFor()

/** Changes one byte of the files whose path ends with `name`, from now on or once. */
async function tamper(page: Page, name: string, times = Number.POSITIVE_INFINITY) {
  let tampered = 0
  await page.route(new RegExp(`/${name}\\?*$`), async (route) => {
    const response = await route.fetch()
    const body = await response.body()
    if (tampered < times) body[body.length - 1]! ^= 1
    tampered += 1
    await route.fulfill({ response, body })
  })
}

itLong(
  'a page that pins the path and the integrity hash of the loader opens the chat without a policy violation',
  async () => {
    const { page, complaints } = await visit(pin())
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await launcher(page).click()
    await untilOnline(page)
    const folder = pinned.path.slice(0, pinned.path.lastIndexOf('/'))
    expect(asked.filter((path) => path.startsWith('/widget'))).toEqual([`${folder}/chat.js`])
    expect(complaints).toEqual([])
  },
)

itLong('a browser refuses a pinned loader with one changed byte', async () => {
  const { page, complaints } = await visit(pin())
  await tamper(page, 'widget.js')
  await page.reload()
  await expect.poll(() => complaints.join()).toMatch(/digest.*integrity/)
  expect(await page.locator('[data-service-widget]').count()).toBe(0)
})

itLong(
  'the loader refuses a chat file with one changed byte, and loads the unchanged file at the next click',
  async () => {
    const { page, complaints } = await visit(pin())
    await tamper(page, 'chat.js', 1)
    await launcher(page).click()
    await page.getByRole('alert').getByText('Chat did not load').waitFor()
    expect(complaints.join()).toMatch(/digest.*integrity/)
    expect(gateway().sessionCount('pk_friendly')).toBe(0)
    await launcher(page).click()
    await untilOnline(page)
  },
)

it('the chat refuses a part with one changed byte, and loads the unchanged part at the next attempt', async () => {
  const { page, complaints } = await visit({ lang: 'de', context: { locale: 'de-AT' } })
  await tamper(page, 'requests.js', 1)
  const suggest = () =>
    gateway().features.request(gateway().conversation('pk_friendly'), 'navigation', { url: 'https://shop.test/' })
  await page.getByRole('button', { name: /^Chat öffnen/ }).click()
  await untilOnline(page)
  suggest()
  await expect.poll(() => complaints.join()).toMatch(/digest.*requests\.js.*integrity/)
  expect(await inWidget(page, '.request').count()).toBe(0)
  suggest()
  await inWidget(page, '.request').waitFor()
  await page.getByRole('button', { name: 'Nein, danke' }).click()

  await page.evaluate(
    `document.querySelector('script[data-site-key]').serviceWidget.load().then((chat) => { window.chat = chat })`,
  )
  const english = page.getByRole('textbox', { name: 'Your message' })
  const french = page.getByRole('textbox', { name: 'Votre message' })
  await tamper(page, 'fr.js', 1)
  await page.evaluate(`window.chat.setLocale('fr')`)
  await english.waitFor()
  expect(complaints.filter((complaint) => /digest.*fr\.js.*integrity/.test(complaint))).toHaveLength(1)
  expect(await french.count()).toBe(0)
  await page.evaluate(`window.chat.setLocale('en')`)
  await page.evaluate(`window.chat.setLocale('fr')`)
  await french.waitFor()
})
