import { describe, expect, it } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { until } from '../support/until.ts'
import { expectAccessible, field, online, useFeatures, write } from './widget-feature-page.ts'

const features = useFeatures()

/** Overrides the opening hours, as an operator does at closing time. */
const setMode = (mode: 'auto' | 'online' | 'away') =>
  features.operator().workspaces.updateInstallation({ siteKey: features.shop().siteKey, availability: { mode } })

describe('the form before a chat', () => {
  const preChat = {
    fields: [
      { name: 'name', label: 'Your name', type: 'text', required: true },
      { name: 'email', label: 'Email address', type: 'email', required: true },
      { name: 'phone', label: 'Phone', type: 'tel', required: false },
    ],
  }

  it('can be filled in by keyboard, marks invalid fields, and captures one lead even if the response is lost', async () => {
    await features.configure({ preChatForm: true }, { preChat })
    const { page, conversationId } = await features.visit()
    await page.getByRole('heading', { name: 'Before we start' }).waitFor()
    expect(await field(page).count()).toBe(0)
    const email = page.getByLabel('Email address')
    expect(await email.getAttribute('autocomplete')).toBe('email')
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.keyboard.press('Tab')
    await page.keyboard.type('ada at example')
    await page.keyboard.press('Enter')
    await page.getByText('Please enter an email address').waitFor()
    expect(await email.getAttribute('aria-invalid')).toBe('true')
    expect(await email.evaluate((input) => input.matches(':focus'))).toBe(true)
    const described = await email.getAttribute('aria-describedby')
    expect(await page.locator(`[data-service-widget] #${described}`).textContent()).toContain('name@example.com')
    await expectAccessible(page)

    // The typed text must be kept when the chat is closed and opened again.
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: /^Open chat/ }).click()
    expect(await page.getByLabel('Your name').inputValue()).toBe('Ada Lovelace')

    await email.fill('ada@example.com')
    let lost = 0
    const keys: (string | undefined)[] = []
    await page.route('**/forms/pre-chat', async (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      keys.push(route.request().headers()['idempotency-key'])
      if (lost > 0) return route.continue()
      lost += 1
      await route.fetch()
      await route.abort('connectionreset')
    })
    await page.getByRole('button', { name: 'Start chat' }).click()
    await page.getByText('We got your details.').waitFor()
    await field(page).waitFor()
    expect(keys).toHaveLength(2)
    expect(keys[0]).toBe(keys[1])

    const leads = await features.leadsOf(conversationId)
    expect(leads).toHaveLength(1)
    expect(leads[0]).toMatchObject({ fields: { name: 'Ada Lovelace', email: 'ada@example.com' } })

    await write(page, 'Now then')
    await page.reload()
    await page.getByText('Now then').waitFor()
    expect(await page.getByRole('heading', { name: 'Before we start' }).count()).toBe(0)
    await features.configure({ preChatForm: false })
  })
})

describe('the offline form', () => {
  itLong('marks fields that the service rejects, can be skipped to write a message, and captures a lead', async () => {
    const offline = { fields: [{ name: 'email', label: 'Email address', type: 'email', required: true }] }
    await features.configure({ offlineForm: true }, { offline })
    const { page, conversationId } = await features.visit(async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), availability: { online: false } } })
    })
    await page.getByRole('heading', { name: 'We are away at the moment' }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Write a message instead' }).click()
    expect(await field(page).evaluate((element) => element.matches(':focus'))).toBe(true)
    await page.getByRole('button', { name: 'Leave your details instead' }).click()
    const email = page.getByLabel('Email address')
    await email.fill('ada@example.com')

    const refusal = {
      code: 'ValidationFailed',
      retryable: false,
      terminal: false,
      correlationId: 'cor_1',
      issues: [{ path: '/fields/email', rule: 'format' }],
    }
    const headers = { 'Access-Control-Allow-Origin': features.shop().origin }
    await page.route('**/forms/offline', (route) => route.fulfill({ status: 400, json: refusal, headers }), {
      times: 1,
    })
    await page.getByRole('button', { name: 'Send details' }).click()
    await page.getByText('Please enter an email address').waitFor()
    expect(await email.evaluate((input) => input.matches(':focus'))).toBe(true)
    expect(await page.getByText('We got your details.').count()).toBe(0)

    await email.fill('ada@example.org')
    await page.getByRole('button', { name: 'Send details' }).click()
    await page.getByText('We got your details.').waitFor()
    expect(await features.leadsOf(conversationId)).toMatchObject([{ fields: { email: 'ada@example.org' } }])
    await features.configure({ offlineForm: false })
  })
})

describe('the end of the opening hours', () => {
  it('makes an open chat offer the offline form, and a submitted form captures a lead', async () => {
    const fields = [{ name: 'email', label: 'Your e-mail', type: 'email', required: true }]
    await features.configure({ offlineForm: true, preChatForm: false }, { offline: { fields } })
    const { page, conversationId, complaints } = await features.visit()
    const second = await features.visit()
    await online(page)
    await online(second.page)
    await second.page.getByRole('textbox', { name: 'Your message' }).fill('I am just writing')
    await setMode('away')
    const title = page.getByText('We are away at the moment')
    await title.waitFor({ timeout: 75_000 })
    await expectAccessible(page)
    // A visitor who is writing a message keeps the message and gets a button that opens the form.
    await second.page.getByRole('button', { name: 'Leave your details instead' }).waitFor()
    expect(await field(second.page).inputValue()).toBe('I am just writing')
    const email = page.getByRole('textbox', { name: 'Your e-mail' })
    await email.fill('ada@example.com')
    // A form that the visitor has begun to fill in stays open when the opening hours begin.
    await setMode('online')
    await online(second.page)
    await second.page.getByRole('button', { name: 'Leave your details instead' }).waitFor({ state: 'hidden' })
    expect(await email.inputValue()).toBe('ada@example.com')
    await setMode('away')
    await page.getByRole('button', { name: 'Send details' }).click()
    await until('the lead', async () => (await features.leadsOf(conversationId)).length === 1)
    expect((await features.leadsOf(conversationId))[0]).toMatchObject({
      source: 'offline-form',
      fields: { email: 'ada@example.com' },
    })
    await title.waitFor({ state: 'hidden' })
    expect([...complaints, ...second.complaints]).toEqual([])
    // A chat that is loaded outside the opening hours shows the form at once, and still offers it after a message.
    const late = await features.visit()
    await late.page.getByText('We are away at the moment').waitFor()
    await late.page.getByRole('button', { name: 'Write a message instead' }).click()
    await write(late.page, 'Hello')
    await late.page.getByRole('button', { name: 'Leave your details instead' }).click()
    await late.page.getByRole('textbox', { name: 'Your e-mail' }).fill('li@example.com')
    await late.page.getByRole('button', { name: 'Send details' }).click()
    await until('the lead', async () => (await features.leadsOf(late.conversationId)).length === 1)
    await field(late.page).waitFor()
    await setMode('auto')
    await features.configure({ offlineForm: false })
  })
})
