import type { Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openChat, openShop, type Shop, type ShopVisit, untilOnline, untilSent, write } from '../support/shop.ts'
import { freeze, setVisible } from '../support/tab-visibility.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const tabCount = 10
const stream = /^GET \S+\/widget\/events/
let shop: Shop
let visit: ShopVisit

afterEach(async () => {
  expect(visit.complaints).toEqual([])
  await visit.context.close()
})

/** Opens tabs of one browser. Each has its own session and an open chat. */
async function openTabs(count: number) {
  visit = await shop.visit()
  const pages = [visit.page]
  while (pages.length < count) pages.push(await shop.openTab(visit))
  for (const page of pages) await openChat(page)
  return pages
}

async function conversationOf(page: Page) {
  const session = await until('a session', () => shop.sessionOf(page))
  return session.conversationId
}

const shows = (page: Page, body: string) => page.locator('[data-service-widget] .bubble', { hasText: body }).waitFor()

describe('tabs of one browser over HTTP/1.1, each with a session of its own', () => {
  const database = testDatabase()
  beforeAll(async () => {
    shop = await openShop(database)
  })

  it('lose no message if two tabs are visible, four hidden and four frozen; hidden tabs can send', async () => {
    const pages = await openTabs(tabCount)
    const conversations = await Promise.all(pages.map(conversationOf))
    const visible = pages.slice(0, 2)
    const hidden = pages.slice(2, 6)
    const frozen = []
    for (const page of pages.slice(6)) frozen.push(await freeze(page))
    for (const page of hidden) await setVisible(page, false)
    for (const [index, page] of [...visible, ...hidden].entries()) await write(page, `question ${index}`)
    await Promise.all([...visible, ...hidden].map((page, index) => untilSent(page, `question ${index}`)))
    await Promise.all(visible.map(untilOnline))
    for (const [index, id] of conversations.entries()) await shop.agentSays(id, `answer ${index}`)
    await Promise.all(visible.map((page, index) => shows(page, `answer ${index}`)))
    await until('two streams', () => shop.network.count(stream) === 2)

    for (const { thaw } of frozen) await thaw()
    for (const page of hidden) await setVisible(page, true)
    await Promise.all(pages.map((page, index) => shows(page, `answer ${index}`)))
    for (const page of pages) await write(page, 'awake')
    await Promise.all(pages.map((page) => untilSent(page, 'awake')))
  })

  it('can open streams even if one older tab has crashed and another older tab hangs', async () => {
    const pages = await openTabs(2)
    await Promise.all(pages.map(untilOnline))
    const [crashing, hanging] = pages as [Page, Page]
    // Neither call returns, because one tab hangs and the other one crashes.
    void hanging.evaluate('for (;;) {}').catch(() => {})
    void crashing.goto('chrome://crash').catch(() => {})
    const next = await shop.openTab(visit)
    const last = await shop.openTab(visit)
    for (const page of [next, last]) await openChat(page)
    await Promise.all([next, last].map(untilOnline))
    await write(last, 'anyone there?')
    await untilSent(last, 'anyone there?')
  })
})

describe('more visible tabs than the browser has HTTP/1.1 connections', () => {
  const database = testDatabase()
  beforeAll(async () => {
    // With rare heartbeats, the widget does not close a silent stream during the test.
    shop = await openShop(database, { heartbeatSeconds: 300 })
  })

  it('all send messages and show answers, because each tab closes its stream within a minute', async () => {
    const { port } = new URL(shop.origin)
    const origins = ['localhost', '127.0.0.1', 'a.localhost', 'b.localhost'].map((host) => `http://${host}:${port}`)
    const { siteKey } = shop
    await shop.operator.workspaces.updateInstallation({ siteKey, origins })
    visit = await shop.visit()
    await visit.page.close()
    await visit.context.addInitScript({
      content: 'const { now } = Date; window.aheadMs = 0; Date.now = () => now() + aheadMs',
    })
    // Eight tabs need eight streams, but the browser opens at most six connections to a host.
    let done = 0
    const pages: Page[] = []
    const visits = [...origins, ...origins].map(async (origin, index) => {
      const page = await visit.context.newPage()
      pages.push(page)
      await page.goto(origin)
      await openChat(page)
      await write(page, `question ${index}`)
      await untilSent(page, `question ${index}`)
      await untilOnline(page)
      await shop.agentSays(await conversationOf(page), `answer ${index}`)
      await shows(page, `answer ${index}`)
      done += 1
    })
    const later = async () => {
      await until('six streams', () => shop.network.count(stream) === 6)
      let minuteLaterMs = performance.now()
      await until('all eight tabs to be done', async () => {
        if (performance.now() >= minuteLaterMs) {
          for (const page of pages) await page.evaluate('void (aheadMs += 61_000)')
          minuteLaterMs = performance.now() + 4_000
        }
        return done === pages.length
      })
    }
    await Promise.all([later(), ...visits])
  })
})

describe('ten tabs of one browser over HTTP/2', () => {
  const database = testDatabase()
  beforeAll(async () => {
    shop = await openShop(database, { http2: true })
  })

  it('each have their own stream, even if they are hidden', async () => {
    const pages = await openTabs(tabCount)
    await Promise.all(pages.map(untilOnline))
    for (const page of pages.slice(2)) await setVisible(page, false)
    for (const page of pages) await shop.agentSays(await conversationOf(page), 'to each')
    await Promise.all(pages.map((page) => shows(page, 'to each')))
    expect(shop.network.count(stream)).toBe(tabCount)
    for (const page of pages) await write(page, 'to you')
    await Promise.all(pages.map((page) => untilSent(page, 'to you')))
    expect(shop.network.count(stream)).toBe(tabCount)
  })
})
