import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  bubbles,
  expectEachOnce,
  field,
  openChat,
  openShop,
  type Shop,
  soon,
  untilSent,
  write,
} from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { hostPages } from './host-pages.ts'

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

  it('chats, signs in and shares the screen on a page whose monitoring adds headers to each request', async () => {
    await shop.operator.workspaces.updateInstallation({ siteKey: shop.siteKey, capabilities: { screenshots: true } })
    const visit = await shop.visit()
    const { page, context } = visit
    await context.addInitScript({ content: hostPages['monitoring that adds headers to each request']!.before! })
    const calls = new Set<string>()
    const without: string[] = []
    page.on('request', (request) => {
      const [, call] = /\/v1\/widget\/(.+)$/.exec(request.url()) ?? []
      if (!call) return
      calls.add(call.replace(/[?].*/, '').split('/').at(-1)!)
      const headers = request.headers()
      if (!headers.traceparent || !headers['x-datadog-trace-id']) without.push(call)
    })
    await page.goto(`${shop.origin}/account`)
    await page.getByRole('button', { name: 'Sign in as Ada Berger' }).click()
    await page.getByRole('heading', { name: 'Hello, Ada.' }).waitFor()
    await reopen(page)
    await write(page, 'Do you see me?')
    await untilSent(page, 'Do you see me?')
    const { sessionId, conversationId } = await visit.session()
    await shop.agentSays(conversationId, 'I do')
    await page.getByText('I do').waitFor()
    await shop.operator.commands.requestScreenshot({ sessionId })
    await page.getByRole('button', { name: 'Share screen' }).click()
    await page.getByRole('button', { name: 'Send picture' }).click()
    await page.getByText('You sent a screenshot.').waitFor()
    expect([...calls]).toEqual(
      expect.arrayContaining([shop.siteKey, 'sessions', 'identify', 'messages', 'events', 'upload']),
    )
    expect(without).toEqual([])
    expect(visit.complaints).toEqual([])
    await context.close()
  })
})
