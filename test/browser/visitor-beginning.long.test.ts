import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { createDemoSite } from '../../widget/demo/server.ts'
import { listen } from '../support/listen.ts'
import { field, openChat, openShop, type Shop, soon, untilOnline, untilSent, write } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()
let shop: Shop
beforeAll(async () => {
  shop = await openShop(database)
})

const launcher = (page: Page) => page.getByRole('button', { name: /^Open chat/ })

it('the widget shows no chat on an origin that is not allowed, logs the origin, and works after the origin is allowed', async () => {
  const site = await createDemoSite({ gatewayUrl: `http://localhost:${shop.network.port}`, siteKey: shop.siteKey })
  const { url: origin } = await listen(site, 'localhost')
  const { page, context, complaints } = await shop.visit()
  const ownLines = () => complaints.filter((line) => line.startsWith('Chat:'))
  await page.goto(origin)
  await expect.poll(ownLines, soon).toHaveLength(1)
  expect(ownLines()[0]).toContain(`OriginNotAllowed. Allow ${origin} for ${shop.siteKey}`)
  expect(await page.locator('[data-service-widget]').count()).toBe(0)

  await shop.operator.workspaces.updateInstallation({ siteKey: shop.siteKey, origins: [shop.origin, origin] })
  await expect
    .poll(async () => {
      await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
      return launcher(page).isVisible()
    }, soon)
    .toBe(true)
  await openChat(page)
  await write(page, 'allowed now')
  await untilSent(page, 'allowed now')
  await context.close()
})

it('on the second device of a verified customer, the widget shows no pre-chat form if agents have already written', async () => {
  await shop.operator.workspaces.updateInstallation({
    siteKey: shop.siteKey,
    capabilities: { preChatForm: true },
    forms: { preChat: { fields: [{ name: 'email', label: 'Email address', type: 'email', required: true }] } },
  })
  const first = await shop.visit('/account')
  await first.page.getByRole('button', { name: 'Sign in as Ada Berger' }).click()
  await first.page.getByRole('heading', { name: 'Hello, Ada.' }).waitFor()
  const form = (page: Page) => page.locator('[data-service-widget] .form-view')
  await launcher(first.page).click()
  await form(first.page).waitFor()
  const { conversationId } = await first.session()
  for (let count = 1; count <= 60; count += 1) await shop.agentSays(conversationId, `number ${count}.`)
  await first.page.getByText('number 60.').waitFor()
  expect(await form(first.page).isVisible()).toBe(false)

  const second = await shop.visit('/account')
  await second.page.getByRole('button', { name: 'Sign in as Ada Berger' }).click()
  await second.page.getByRole('heading', { name: 'Hello, Ada.' }).waitFor()
  await launcher(second.page).click()
  await second.page.getByText('number 60.').waitFor()
  await untilOnline(second.page)
  expect((await second.session()).conversationId).toBe(conversationId)
  expect(await form(second.page).count()).toBe(0)
  expect(await field(second.page).isVisible()).toBe(true)
  for (const { context } of [first, second]) await context.close()
})
