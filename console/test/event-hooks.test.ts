import { beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

describe('an event hook', () => {
  it('is created with the chosen events and a rate limit, and is listed apart from subscriptions', async () => {
    const page = await browser.open(core, 'subscriptions')
    await page.getByRole('link', { name: 'New event hook' }).click()
    await page.getByLabel('Destination URL').fill('https://ops.example.com/events')
    expect(await page.getByRole('combobox', { name: 'Fields to send' }).count()).toBe(0)
    const rate = page.getByLabel('Requests per second at most')
    await rate.fill('1001')
    const create = page.getByRole('button', { name: 'Create event hook' })
    await create.click()
    await page.getByText('Enter 1 to 1,000.').waitFor()
    await page.getByText('Choose at least one event.').waitFor()
    await rate.fill('5')
    for (const name of ['First delivery given up', 'Message from a visitor']) await page.getByLabel(name).check()
    expect(await page.getByText('message.visitor').isVisible()).toBe(false)
    await page.locator('summary', { hasText: 'More' }).click()
    await page.getByText('message.visitor').waitFor()
    await create.click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/I have stored it/).check()
    const eventTypes = ['subscription.failing', 'message.visitor']
    expect(core.calls('CreateHook')).toMatchObject([{ eventTypes, maxPerSecond: 5 }])
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('Enabled. Events are sent.').waitFor()
    expect(await page.getByLabel('Message from a visitor').isChecked()).toBe(true)
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('link', { name: 'Destinations' }).first().click()
    await page.getByText('First delivery given up since the last success, Message from a visitor').waitFor()
  })
})

describe('the policy of a lead subscription', () => {
  itLong('is chosen in the form, with names of fields and an example of what is sent', async () => {
    const page = await browser.open(core, 'subscriptions/sub_old')
    const field = page.getByRole('combobox', { name: 'Fields to send' })
    await field.fill('phone')
    await page.keyboard.press('Enter')
    await page.getByLabel('Lead stored').check()
    await page.getByLabel('Leads from').selectOption('both forms')
    await page.getByText(/^Example with/).click()
    await page.getByText('"reference"').waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Save changes' }).click()
    await until('the policy', () => core.leads.subscription('sub_old').policy !== undefined)
    const { policy, mappedFields } = core.leads.subscription('sub_old')
    expect(policy?.types).toContain('lead.captured')
    expect(policy?.sources).toEqual(['pre-chat-form', 'offline-form'])
    expect(mappedFields).toContain('phone')
  })
})
