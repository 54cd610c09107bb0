import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { accessibilityFindings } from '../../console/test/test-console.ts'
import { bubbles, field, openChat, openShop, type Shop, untilSent, write } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
let shop: Shop
beforeAll(async () => {
  shop = await openShop(database)
})

const policyUrl = 'https://shop.example/privacy'
const require = (policyVersion: string) =>
  shop.operator.workspaces.updateInstallation({
    siteKey: shop.siteKey,
    consent: { required: true, policyUrl, policyVersion },
  })
const requireNothing = () => shop.operator.workspaces.updateInstallation({ siteKey: shop.siteKey, consent: {} })

const step = (page: Page) => page.getByRole('region', { name: 'Your consent' })
const focused = (page: Page) =>
  page.evaluate<string>(
    `document.querySelector('[data-service-widget]').shadowRoot.activeElement?.textContent || document.querySelector('[data-service-widget]').shadowRoot.activeElement?.tagName`,
  )

test('a visitor can decline consent and grant it later with the keyboard, and is asked again for a new policy version', async () => {
  await require('v1')
  const visit = await shop.visit()
  const { page } = visit
  await openChat(page)
  await step(page).waitFor()
  expect(
    await step(page)
      .getByRole('link', { name: /privacy policy/ })
      .getAttribute('href'),
  ).toBe(policyUrl)
  expect(await accessibilityFindings(page)).toEqual([])

  // The message waits for the decision. The focus moves to the consent step, and the visitor can still type.
  await write(page, 'Do you ship to Graz?')
  await step(page)
    .getByText(/waits until you decide/)
    .waitFor()
  await until('the focus on the step', async () => (await focused(page)) === 'Your consent')
  await field(page).fill('And one more thing')
  const { sessionId, conversationId } = await visit.session()
  expect(await shop.messagesOf(conversationId)).toEqual([])

  await step(page).getByRole('button', { name: 'Decline' }).click()
  await step(page).getByText('You declined.').waitFor()
  await page.getByText('Not sent', { exact: true }).waitFor()
  expect(await field(page).inputValue()).toBe('And one more thing')
  const decision = async () => (await shop.operator.sessions.getSession({ sessionId })).session?.consent
  expect(await decision()).toMatchObject({ decision: 2, policyVersion: 'v1', policyUrl })
  expect(await accessibilityFindings(page)).toEqual([])

  await page.keyboard.press('Enter')
  await step(page).waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await step(page).waitFor({ state: 'hidden' })
  await until('the focus in the message field', async () => (await focused(page)) === 'TEXTAREA')
  expect(await decision()).toMatchObject({ decision: 1, policyVersion: 'v1' })
  await untilSent(page, 'Do you ship to Graz?')
  expect(await field(page).inputValue()).toBe('And one more thing')

  // The policy changes while the chat is open. The next message waits for the decision, and is sent once.
  await require('v2')
  await page.keyboard.press('Tab')
  await field(page).press('Enter')
  await step(page).waitFor()
  await field(page).fill('typed meanwhile')
  await step(page).getByRole('button', { name: 'I agree' }).click()
  await untilSent(page, 'And one more thing')
  expect(await field(page).inputValue()).toBe('typed meanwhile')
  expect(await decision()).toMatchObject({ decision: 1, policyVersion: 'v2' })
  expect(await bubbles(page)).toEqual(['Do you ship to Graz?', 'And one more thing'])

  await page.reload()
  await field(page).waitFor()
  await write(page, 'after a reload')
  await untilSent(page, 'after a reload')
  expect(await step(page).isVisible()).toBe(false)
  expect(visit.complaints).toEqual([])
  await requireNothing()
})

describe('a person on the suppression list', () => {
  const fields = [{ name: 'email', label: 'Email address', type: 'email', required: true }]
  const entry = (value: string) => ({ of: { case: 'email' as const, value } })
  const leadsOf = async (conversationId: string) =>
    (await shop.operator.leads.listLeads({ workspaceId: shop.workspaceId })).leads.filter(
      (lead) => lead.conversationId === conversationId,
    )
  async function setForm(offlineForm: boolean) {
    await shop.operator.workspaces.updateInstallation({
      siteKey: shop.siteKey,
      capabilities: { offlineForm },
      forms: { offline: { fields } },
      availability: { mode: offlineForm ? 'away' : 'auto' },
    })
    await until('the configuration', async () => {
      const response = await fetch(`${shop.stack.gateways[0]!.url}/api/integrations/v1/widget/config/${shop.siteKey}`, {
        headers: { Origin: shop.origin, 'X-Service-Widget-Version': '1.0' },
      })
      const config = (await response.json()) as { availability: object; capabilities: { offlineForm: boolean } }
      return config.capabilities.offlineForm === offlineForm && 'online' in config.availability
    })
  }

  test('sees that the offline form is rejected and can still chat; the form is accepted after the entry is removed', async () => {
    const { workspaceId } = shop
    const { workspaces } = shop.operator
    await setForm(true)
    await workspaces.addSuppressions({ workspaceId, entries: [entry('ada@example.com')], reason: 'asked us' })
    const visit = await shop.visit()
    const { page } = visit
    await page.getByRole('button', { name: /^Open chat/ }).click()
    const email = page.getByLabel('Email address')
    await email.fill(' Ada@EXAMPLE.com')
    await page.getByRole('button', { name: 'Send details' }).click()
    await page.getByText('We cannot contact you at these details.').waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    expect(await email.inputValue()).toMatch(/Ada@EXAMPLE\.com/)
    const { conversationId } = await visit.session()
    expect(await leadsOf(conversationId)).toEqual([])

    await page.getByRole('button', { name: 'Write a message instead' }).click()
    await write(page, 'Do you ship to Graz?')
    await untilSent(page, 'Do you ship to Graz?')
    await workspaces.removeSuppressions({ workspaceId, entries: [entry('ada@example.com')] })
    await page.getByRole('button', { name: 'Leave your details instead' }).click()
    await page.getByRole('button', { name: 'Send details' }).click()
    await page.getByText('We got your details.').waitFor()
    expect(await leadsOf(conversationId)).toMatchObject([{ fields: { email: 'Ada@EXAMPLE.com' } }])
    expect(visit.complaints).toEqual([])
    await setForm(false)
  })
})
