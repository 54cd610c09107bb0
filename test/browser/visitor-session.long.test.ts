import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { isLong, itLong } from '../support/is-long.ts'
import {
  bubbles,
  expectEachOnce,
  field,
  openChat,
  openShop,
  type Shop,
  soon,
  untilOnline,
  untilSent,
  write,
} from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()
let shop: Shop

beforeAll(async () => {
  shop = await openShop(database)
})

const isOpen = (page: Page) => field(page).isVisible()

/**
 * Opens the chat. The click may be unnecessary: after a page load, the widget itself opens a chat
 * that was open before.
 */
async function reopen(page: Page) {
  const launcher = page.getByRole('button', { name: /^Open chat/ })
  await expect
    .poll(async () => {
      if (!(await isOpen(page))) await launcher.click({ timeout: 1_000 }).catch(() => {})
      return isOpen(page)
    }, soon)
    .toBe(true)
}

describe('a visitor of the shop', () => {
  it('can duplicate the tab: both tabs share one session and show each message once', async () => {
    const visit = await shop.visit()
    const { page, context } = visit
    await openChat(page)
    await write(page, 'from the first tab')
    await untilSent(page, 'from the first tab')
    const { sessionId } = await visit.session()
    const [copy] = await Promise.all([context.waitForEvent('page'), page.evaluate('void window.open(location.href)')])
    await copy.getByText('from the first tab').waitFor()
    await write(copy, 'from the copy')
    await untilSent(copy, 'from the copy')
    await write(page, 'from the first tab again')
    await untilSent(page, 'from the first tab again')
    await shop.agentSays((await visit.session()).conversationId, 'hello to both of you')

    const all = ['from the first tab', 'from the copy', 'from the first tab again', 'hello to both of you']
    for (const one of [page, copy]) {
      await one.getByText('hello to both of you').waitFor()
      await expectEachOnce(shop, { ...visit, page: one }, all)
      await untilOnline(one)
    }
    const stored = await shop.messagesOf((await visit.session()).conversationId)
    expect(new Set(stored.flatMap((message) => message.sessionId ?? []))).toEqual(new Set([sessionId]))

    // If this tab had the stream, the other tab must open a stream now.
    await page.close()
    await shop.agentSays((await visit.session()).conversationId, 'and to the one that stays')
    await copy.getByText('and to the one that stays').waitFor()
    await expectEachOnce(shop, { ...visit, page: copy }, [...all, 'and to the one that stays'])
    expect(visit.complaints).toEqual([])
    await context.close()
  })

  itLong('can chat in each of three tabs, which together have at most two streams', async () => {
    const visit = await shop.visit()
    const pages = [visit.page, await shop.openTab(visit), await shop.openTab(visit)]
    for (const [index, page] of pages.entries()) {
      await openChat(page)
      await write(page, `question ${index}`)
    }
    for (const [index, page] of pages.entries()) {
      await untilSent(page, `question ${index}`)
      await shop.agentSays((await shop.sessionOf(page))!.conversationId, `answer ${index}`)
    }
    for (const [index, page] of pages.entries())
      await expect.poll(() => bubbles(page), soon).toEqual([`question ${index}`, `answer ${index}`])
    expect(shop.network.count(/^GET \S+\/widget\/events/)).toBeLessThanOrEqual(2)
    expect(visit.complaints).toEqual([])
    await visit.context.close()
  })

  it('sees at once that the session was revoked while they were typing, cannot send, and gets no new session on reload', async () => {
    const visit = await shop.visit()
    const { page, context } = visit
    await openChat(page)
    await write(page, 'before')
    await untilSent(page, 'before')
    await field(page).fill('half a sen')
    await shop.operator.sessions.revokeSession({ sessionId: (await visit.session()).sessionId })
    await page.getByText('This chat was ended by the site.').waitFor()
    expect(await isOpen(page)).toBe(false)
    await page.keyboard.press('Enter')
    await expectEachOnce(shop, visit, ['before'])

    // The panel was open, so it opens again.
    await page.reload()
    await page.getByText('Your previous chat has ended.').waitFor()
    expect(await isOpen(page)).toBe(false)
    expect((await shop.messagesOf((await visit.session()).conversationId)).map(({ body }) => body)).toEqual(['before'])
    // As the console's dialog says, the visitor can start a new session.
    await page.getByRole('button', { name: 'Start a new chat' }).click()
    await untilOnline(page)
    await write(page, 'after')
    await untilSent(page, 'after')
    expect(visit.complaints).toEqual([])
    await context.close()
  })

  it('sees only their own messages if another person signs in and out in the same tab', async () => {
    const visit = await shop.visit()
    const { page, context } = visit
    const verifiedAs = async () => {
      const { session } = await shop.operator.sessions.getSession({ sessionId: (await visit.session()).sessionId })
      return session?.externalSubject ?? 'nobody'
    }
    const press = (name: string) => page.getByRole('button', { name }).click()
    await openChat(page)
    await write(page, 'written before signing in')
    await untilSent(page, 'written before signing in')
    const anonymous = await visit.session()

    await page.goto(`${shop.origin}/account`)
    await press('Sign in as Ada Berger')
    await page.getByRole('heading', { name: 'Hello, Ada.' }).waitFor()
    await expect.poll(verifiedAs, soon).toBe('customer_1042')
    const adas = await visit.session()
    expect(adas.conversationId).toBe(anonymous.conversationId)
    await reopen(page)
    await shop.agentSays(adas.conversationId, 'good evening, Ms Berger')
    await page.getByText('good evening, Ms Berger').waitFor()
    await expectEachOnce(shop, visit, ['written before signing in', 'good evening, Ms Berger'])

    await press('Switch to Jonas Lindqvist')
    await page.getByRole('heading', { name: 'Hello, Jonas.' }).waitFor()
    await expect.poll(verifiedAs, soon).toBe('customer_1107')
    const jonass = await visit.session()
    expect(jonass.sessionId).not.toBe(adas.sessionId)
    expect(jonass.conversationId).not.toBe(adas.conversationId)
    await reopen(page)
    expect(await bubbles(page)).toEqual([])
    await write(page, 'Jonas here')
    await untilSent(page, 'Jonas here')
    // The agent writes to Ada's conversation. Jonas must not see this message.
    await shop.agentSays(adas.conversationId, 'one more thing, Ms Berger')
    await expectEachOnce(shop, visit, ['Jonas here'])

    await press('Sign out')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await expect.poll(verifiedAs, soon).toBe('nobody')
    await reopen(page)
    expect(await bubbles(page)).toEqual([])
    expect([adas.conversationId, jonass.conversationId]).not.toContain((await visit.session()).conversationId)

    await press('Sign in as Ada Berger')
    await page.getByRole('heading', { name: 'Hello, Ada.' }).waitFor()
    await expect.poll(verifiedAs, soon).toBe('customer_1042')
    await reopen(page)
    await page.getByText('one more thing, Ms Berger').waitFor()
    expect((await visit.session()).conversationId).toBe(adas.conversationId)
    await expectEachOnce(shop, visit, [
      'written before signing in',
      'good evening, Ms Berger',
      'one more thing, Ms Berger',
    ])
    expect(visit.complaints).toEqual([])
    await context.close()
  })

  // A page of the history has 50 messages.
  const count = isLong ? 500 : 120
  it(`sees each message once and in order when scrolling back through ${count} messages`, async () => {
    const visit = await shop.visit()
    const { page, context } = visit
    await openChat(page)
    await write(page, 'the very first')
    await untilSent(page, 'the very first')
    const { conversationId } = await visit.session()
    for (let sent = 1; sent < count; sent += 100) {
      const numbers = Array.from({ length: Math.min(100, count - sent) }, (_, index) => sent + index)
      await Promise.all(numbers.map((number) => shop.agentSays(conversationId, `number ${number}.`)))
    }
    await page.reload()
    await expect.poll(async () => (await bubbles(page)).length, soon).toBeGreaterThan(0)
    expect((await bubbles(page)).length).toBeLessThan(count)
    const scroller = page.locator('[data-service-widget] .scroller')
    await expect
      .poll(async () => {
        await scroller.evaluate((element) => {
          element.scrollTop = 0
        })
        return (await bubbles(page)).length
      }, soon)
      .toBe(count)

    const stored = await shop.messagesOf(conversationId)
    expect(stored).toHaveLength(count)
    await expectEachOnce(
      shop,
      visit,
      stored.map(({ body }) => body),
    )
    expect((await bubbles(page))[0]).toBe('the very first')
    await shop.agentSays(conversationId, 'and a new one')
    await page.getByText('and a new one').waitFor()
    await expectEachOnce(shop, visit, [...stored.map(({ body }) => body), 'and a new one'])
    expect(visit.complaints).toEqual([])
    await context.close()
  })
})
