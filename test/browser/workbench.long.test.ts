import { beforeAll, describe, expect, it } from 'vitest'
import {
  bubbles,
  expectEachOnce,
  openChat,
  openShop,
  type Shop,
  soon,
  statusLineOf,
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

describe('the workbench of the demo shop', () => {
  it('simulates an offline network across a reload, and messages are pending until the network is back', async () => {
    const visit = await shop.visit()
    const { page } = visit
    await openChat(page)
    await write(page, 'before')
    await untilSent(page, 'before')
    await page.getByRole('button', { name: 'Workbench' }).click()
    await page.getByRole('radio', { name: /^Offline/ }).check()
    await page.getByText('Connection lost. Reconnecting…').waitFor()
    await write(page, 'into the void')
    await expect.poll(() => bubbles(page), soon).toEqual(['before', 'into the void'])
    await page.reload()
    await page.getByRole('radio', { name: /^Offline/, checked: true }).waitFor()
    await expect.poll(() => statusLineOf(page, 'into the void'), soon).not.toMatch(/Sent/)
    expect((await shop.messagesOf((await visit.session()).conversationId)).map(({ body }) => body)).toEqual(['before'])

    await page.getByRole('radio', { name: /^No trouble/ }).check()
    await untilSent(page, 'into the void')
    await expectEachOnce(shop, visit, ['before', 'into the void'])
    await visit.context.close()
  })

  const failures = ['Answers lost', 'Errors 503', 'Slow', 'Stream half dead']
  it.each(failures)('simulates the network failure “%s”, and each message appears once', async (name) => {
    const visit = await shop.visit('/account')
    const { page } = visit
    await openChat(page)
    await write(page, 'before')
    await untilSent(page, 'before')
    await page.getByRole('button', { name: 'Workbench' }).click()
    await page.getByRole('radio', { name: new RegExp(`^${name}`) }).check()
    await write(page, 'in trouble')
    await shop.agentSays((await visit.session()).conversationId, 'an answer')
    await expect.poll(async () => (await bubbles(page)).includes('in trouble'), soon).toBe(true)
    await page.getByRole('radio', { name: /^No trouble/ }).check()
    await untilSent(page, 'in trouble')
    await page.locator('.bubble', { hasText: 'an answer' }).waitFor()
    await untilOnline(page)
    await expectEachOnce(shop, visit, ['before', 'in trouble', 'an answer'])
    await visit.context.close()
  })

  it('lists events of the page without credentials, and can be used without a mouse', async () => {
    const visit = await shop.visit('/lamps')
    const { page } = visit
    await openChat(page)
    await write(page, 'How tall is Holm?')
    await untilSent(page, 'How tall is Holm?')
    await page.keyboard.press('Alt+Shift+E')
    const entries = page.getByRole('list', { name: 'Events, newest first' }).getByRole('listitem')
    await entries.filter({ hasText: 'message.accepted' }).first().waitFor()
    await entries.filter({ hasText: 'POST /sessions' }).first().waitFor()
    await page.evaluate("for (const summary of document.querySelectorAll('.entries summary')) summary.click()")
    await entries.locator('pre').first().waitFor()
    expect(await page.locator('.entries').innerText()).not.toMatch(/eyJ|accessGrant|renewalToken/)

    await page.keyboard.press('Tab')
    await page.getByRole('searchbox').focus()
    await page.keyboard.type('message.accepted')
    await expect.poll(() => entries.count(), soon).toBe(1)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('Nothing here yet.').waitFor()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('complementary', { name: 'Workbench' }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Workbench' }).evaluate((button) => button.matches(':focus'))).toBe(
      true,
    )
    expect(visit.complaints).toEqual([])
    await visit.context.close()
  })

  it('shows the same chat after page loads, and opens it with a question', async () => {
    const visit = await shop.visit('/lamps')
    const { page } = visit
    await openChat(page)
    await write(page, 'on the first page')
    await untilSent(page, 'on the first page')
    await page.goto(`${shop.origin}/account`)
    await page.locator('.bubble', { hasText: 'on the first page' }).waitFor()
    await page.goto(`${shop.origin}/`)
    await page.locator('.bubble', { hasText: 'on the first page' }).waitFor()
    // Closes the chat, because it is still open on the next page and covers the button.
    await page.getByRole('dialog').getByRole('button', { name: 'Close chat' }).click()
    await page.getByRole('button', { name: 'Ask about Holm' }).click()
    const field = page.getByRole('textbox', { name: 'Your message' })
    await expect.poll(() => field.inputValue(), soon).toBe('I have a question about Holm: ')
    await field.press('End')
    await page.keyboard.type('how tall?')
    await page.keyboard.press('Enter')
    await untilSent(page, 'how tall?')
    await expectEachOnce(shop, visit, ['on the first page', 'I have a question about Holm: how tall?'])
    expect(visit.complaints).toEqual([])
    await visit.context.close()
  })
})
