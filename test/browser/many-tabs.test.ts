import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { bubbles, openChat, openShop, type Shop, soon, untilOnline, untilSent, write } from '../support/shop.ts'
import { freeze, setVisible } from '../support/tab-visibility.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()
const tabCount = 10
let shop: Shop

beforeAll(async () => {
  shop = await openShop(database)
})

/** Tabs of one browser, each with a session of its own and the chat open. */
async function openTabs(count: number) {
  const visit = await shop.visit()
  const pages = [visit.page]
  while (pages.length < count) pages.push(await shop.openTab(visit))
  for (const page of pages) await openChat(page)
  return { visit, pages }
}

async function conversationOf(page: Page) {
  const session = await expect.poll(() => shop.sessionOf(page), soon).toBeTruthy()
  void session
  return (await shop.sessionOf(page))!.conversationId
}

async function agentSays(page: Page, body: string) {
  await shop.agentSays(await conversationOf(page), body)
}

describe('ten tabs of one browser over HTTP/1.1, each with a session of its own', () => {
  it('all visible: each sends, and each shows the answer within seconds', async () => {
    const { visit, pages } = await openTabs(tabCount)
    for (const [index, page] of pages.entries()) await write(page, `question ${index}`)
    for (const [index, page] of pages.entries()) await untilSent(page, `question ${index}`)
    await Promise.all(pages.map(untilOnline))
    for (const [index, page] of pages.entries()) await agentSays(page, `answer ${index}`)
    const expected = pages.map((_, index) => [`question ${index}`, `answer ${index}`])
    await expect.poll(() => Promise.all(pages.map(bubbles)), soon).toEqual(expected)
    expect(new Set(await Promise.all(pages.map(conversationOf))).size).toBe(tabCount)
    expect(visit.complaints).toEqual([])
    await visit.context.close()
  })
})
