import { Code } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { until } from '../../test/support/until.ts'
import { addDemoData } from './demo-data.ts'
import type { FakeCore } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()
let core: FakeCore
beforeEach(async () => {
  core = await browser.newCore()
  await addDemoData(core)
})

describe('deliveries in the console', () => {
  it('a double click retries a delivery once; a later click retries it again with a new idempotency key', async () => {
    const { page, close } = await browser.open(core, 'deliveries/dlv_1')
    await page.getByRole('button', { name: 'Retry now' }).dblclick()
    await page.getByText('#3', { exact: true }).waitFor()
    expect(core.calls('RetryDeliveryAttempt')).toHaveLength(1)
    core.leads.attempts.at(-1)!.status = 6
    await page.getByRole('button', { name: 'Retry now' }).click()
    await page.getByText('#4', { exact: true }).waitFor()
    const keys = core.calls('RetryDeliveryAttempt').map(({ idempotencyKey }) => idempotencyKey)
    expect(new Set(keys).size).toBe(2)
    await close()
  })

  it('a delivery gets only one new attempt if the response to a retry is lost and the operator clicks again', async () => {
    const { page, close } = await browser.open(core, 'deliveries/dlv_1')
    core.fault('RetryDeliveryAttempt', { code: Code.Unavailable, afterwards: true })
    const button = page.getByRole('button', { name: 'Retry now' })
    await button.click()
    await page.getByText(/cannot be reached/).waitFor()
    // Clicks again before the list has been reloaded.
    if (await button.isVisible()) await button.click({ timeout: 1000 }).catch(() => {})
    await page.getByText('#3', { exact: true }).waitFor()
    expect(core.leads.attempts.filter(({ deliveryId }) => deliveryId === 'dlv_1')).toHaveLength(3)
    await close()
  })

  it('deliveries can be filtered by status, and the URL contains the filter', async () => {
    const { page, close } = await browser.open(core, 'deliveries')
    await page.getByText('Dead letter').last().waitFor()
    await page.getByLabel('Status').selectOption('accepted')
    await until('one row', async () => (await page.locator('.table-row').count()) === 1)
    expect(page.url()).toMatch(/\/console\/deliveries\?status=accepted$/)
    await page.goBack()
    await until('both rows', async () => (await page.locator('.table-row').count()) === 2)
    await close()
  })
})

describe('lead subscriptions in the console', () => {
  it('the secret of a new lead subscription is shown once, until the operator confirms that it is stored', async () => {
    const { page, complaints, close } = await browser.open(core, 'subscriptions/new')
    const address = page.getByLabel('Destination URL')
    await address.fill('https://user:secret@hooks.example.com/')
    await page.getByRole('button', { name: 'Create subscription' }).click()
    await page.getByText(/Remove the user name and password/).waitFor()
    await address.fill('https://hooks.example.com/leads')
    const field = page.getByRole('combobox', { name: 'Fields to send' })
    await field.fill('reference')
    await page.keyboard.press('Enter')
    await page.getByText(/always sent/).waitFor()
    await field.fill('email')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Create subscription' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByLabel('Secret').inputValue()).toBe('whsec_new1c2VjcmV0')
    expect(await accessibilityFindings(page)).toEqual([])
    await page.keyboard.press('Escape')
    await dialog.getByLabel(/I have stored it/).check()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('heading', { level: 1, name: 'hooks.example.com' }).waitFor()
    expect(await page.content()).not.toContain('whsec_new1c2VjcmV0')
    expect(core.calls('CreateSubscription')).toMatchObject([{ mappedFields: ['email'], automatic: true }])
    expect(complaints).toEqual([])
    await close()
  })

  it('a disabled lead subscription shows the reason; an operator can enable and change it, rotate its secret and disable it again', async () => {
    const { page, close } = await browser.open(core, 'subscriptions/sub_old')
    await page.getByText(/3 deliveries are held/).waitFor()
    await page.getByRole('button', { name: 'Enable' }).click()
    await page.getByText('Enabled. Leads are sent.').waitFor()
    await page.getByLabel('Destination URL').fill('https://new.example.com/in')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('heading', { level: 1, name: 'new.example.com' }).waitFor()
    await page.getByRole('button', { name: 'Rotate' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Previous secret expires').selectOption('in 1 hour')
    await dialog.getByRole('button', { name: 'Create new secret' }).click()
    await dialog.getByText('New signing secret').waitFor()
    expect(await dialog.getByLabel('Secret').inputValue()).toBe('whsec_rotatedc2VjcmV0')
    expect(core.calls('RotateSubscriptionSecret')).toMatchObject([{ overlapSeconds: 3600 }])
    await dialog.getByLabel(/I have stored it/).check()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Disable' }).click()
    await dialog.getByText(/held, not lost/).waitFor()
    await dialog.getByRole('button', { name: 'Disable' }).click()
    await page.getByText(/An operator disabled it/).waitFor()
    expect(core.leads.subscription('sub_old').status).toBe(SubscriptionStatus.DISABLED)
    await close()
  })
})

describe('an enabled lead subscription', () => {
  it('an operator activates the new secret, adds a header, recovers deliveries and sends a test', async () => {
    const { page, close, complaints } = await browser.open(core, 'subscriptions/sub_crm')
    await page.getByRole('button', { name: 'Activate new secret' }).click()
    await page.getByText(/previous secret still signs/).waitFor({ state: 'detached' })
    expect(core.calls('ActivateSubscriptionSecret')).toMatchObject([{ secretId: 'sec_2' }])
    await page.getByLabel('Header name').fill('Authorization')
    await page.getByLabel('Header value').fill('Bearer key')
    await page.keyboard.press('Enter')
    await page.getByText('Authorization: ••••').waitFor()
    const updates: { headers?: unknown }[] = core.calls('UpdateSubscription')
    const update = updates.find(({ headers }) => headers !== undefined)
    expect(update!.headers).toMatchObject({
      headers: [{ name: 'x-tenant' }, { name: 'Authorization', value: 'Bearer key' }],
    })
    await page.getByRole('button', { name: 'Count deliveries' }).click()
    await page.getByText('7 deliveries can be sent again.').waitFor()
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByText('7 deliveries can be sent again.').waitFor({ state: 'detached' })
    expect(core.calls('RecoverDeliveries').map(({ preview }) => preview)).toEqual([true, false])
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Send test' }).click()
    await page.getByRole('heading', { level: 1, name: 'Delivery' }).waitFor()
    await page.getByText('None: test or operational event').waitFor()
    expect(complaints).toEqual([])
    await close()
  })
})

describe('changes of lead subscriptions', () => {
  it('a secret rotation is retried with the same idempotency key if the response is lost; the next rotation has a new key', async () => {
    const { page, close } = await browser.open(core, 'subscriptions/sub_old')
    const dialog = page.getByRole('dialog')
    core.fault('RotateSubscriptionSecret', { code: Code.Unavailable, afterwards: true })
    await page.getByRole('button', { name: 'Rotate' }).click()
    await dialog.getByRole('button', { name: 'Create new secret' }).click()
    await dialog.getByText(/cannot be reached/).waitFor()
    for (const _ of [1, 2]) {
      await dialog.getByRole('button', { name: 'Create new secret' }).click()
      await dialog.getByLabel(/I have stored it/).check()
      await dialog.getByRole('button', { name: 'Done' }).click()
      await page.getByRole('button', { name: 'Rotate' }).click()
    }
    const keys = core.calls('RotateSubscriptionSecret').map(({ idempotencyKey }) => idempotencyKey)
    expect(keys).toEqual([expect.stringMatching(/^op_/), keys[0], expect.stringMatching(/^op_/)])
    expect(keys[2]).not.toBe(keys[0])
    await close()
  })

  it('a change of a lead subscription or an installation sends only the edited fields', async () => {
    const { page, close } = await browser.open(core, 'subscriptions/sub_old')
    await page.getByLabel('Destination URL').fill('https://new.example.com/in')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('heading', { level: 1, name: 'new.example.com' }).waitFor()
    const [subscription] = core.calls('UpdateSubscription')
    const { destinationUrl, automatic, mappedFields } = subscription!
    expect([destinationUrl, automatic, mappedFields]).toEqual(['https://new.example.com/in', undefined, undefined])
    await close()

    const installation = await browser.open(core, 'installations/pk_shop')
    await installation.page.getByRole('textbox', { name: 'Accent colour', exact: true }).fill('#aa3311')
    await installation.page.getByRole('button', { name: 'Save appearance' }).click()
    await until('the colour', () => core.workspace.installation('pk_shop').appearance?.accentColor === '#aa3311')
    expect(core.calls('UpdateInstallation')).toMatchObject([
      { appearance: { accentColor: '#aa3311', title: '', greeting: '', position: '' }, origins: [] },
    ])
    await installation.close()
  })
})

describe('leads in the console', () => {
  it('a lead can be sent to a destination, links to its conversation, and shows its fields as text', async () => {
    core.leads.addLead({ leadId: 'lead_evil', source: 'offline-form', fields: { name: '<b onclick=x>Bold</b>' } })
    const { page, complaints, close } = await browser.open(core, 'leads')
    await page.getByText('<b onclick=x>Bold</b>', { exact: true }).waitFor()
    await page.getByRole('link', { name: /Maria Huber/ }).click()
    await page.getByRole('button', { name: 'Send lead' }).click()
    await until(
      'one more delivery',
      () => core.leads.attempts.filter(({ leadId }) => leadId === 'lead_maria').length === 3,
    )
    await page.getByRole('link', { name: 'Open conversation' }).click()
    await page.getByText('And if it does not fit?').first().waitFor()
    expect(complaints).toEqual([])
    await close()
  })
})

describe('installations in the console', () => {
  it('an installation rejects invalid origins, and stores new origins, appearance, capabilities, form fields and a new secret', async () => {
    const { page, complaints, close } = await browser.open(core, 'installations/pk_shop')
    const origins = page.getByRole('textbox', { name: 'Allowed origins' })
    for (const [entry, says] of [
      ['https://shop.example/path', /Did you mean https:\/\/shop.example\?/],
      ['https://*.com', /a full domain/],
      ['shop.example', /Start with https/],
    ] as const) {
      await origins.fill(entry)
      await page.keyboard.press('Enter')
      await page.getByText(says).waitFor()
    }
    await origins.fill('https://new.example')
    await page.keyboard.press('Enter')
    await until('the origin', () => core.workspace.installation('pk_shop').origins.includes('https://new.example'))
    await page.getByRole('button', { name: 'Remove https://*.shop.example' }).click()
    await until('it is gone', () => core.workspace.installation('pk_shop').origins.length === 2)
    await page.getByRole('textbox', { name: 'Accent colour', exact: true }).fill('#aa3311')
    await page.getByRole('button', { name: 'Save appearance' }).click()
    await until('the colour', () => core.workspace.installation('pk_shop').appearance?.accentColor === '#aa3311')
    await page.getByRole('switch', { name: 'Offline form' }).click()
    await until('the form is on', () => core.workspace.installation('pk_shop').capabilities?.offlineForm === true)
    const offline = page.getByRole('form', { name: 'Offline form' })
    await offline.getByText(/Not shown to visitors/).waitFor({ state: 'detached' })
    await page
      .getByRole('form', { name: 'Pre-chat form' })
      .getByText(/Not shown to visitors/)
      .waitFor()
    await offline.getByRole('button', { name: /Add field/ }).click()
    await offline.getByLabel('Label').fill('Your name')
    await offline.getByLabel(/Lead field name/).fill('name')
    await offline.getByLabel('Max length').fill('80')
    await offline.getByRole('button', { name: 'Save offline form' }).click()
    await until('the field', () => core.workspace.installation('pk_shop').forms?.offline?.fields[0]?.name === 'name')
    expect(core.workspace.installation('pk_shop').forms?.offline?.fields[0]?.maxLength).toBe(80)
    await page.reload()
    expect(await offline.getByLabel('Max length').inputValue()).toBe('80')
    await page.getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('button', { name: 'Create new secret' }).click()
    await page.getByLabel(/I have stored it/).check()
    await page.getByRole('button', { name: 'Done' }).click()
    await until('two keys', () => core.workspace.installation('pk_shop').identityKeyIds.length === 2)
    expect(complaints).toEqual([])
    await close()
  })

  it('an operator can create an installation on a connection, and disable the connection after a confirmation', async () => {
    const { page, close } = await browser.open(core, 'installations')
    await page.getByRole('button', { name: 'New installation' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Allowed origins').fill('https://blog.example')
    await page.keyboard.press('Enter')
    await dialog.getByRole('button', { name: 'Create installation' }).click()
    await dialog.getByText('Identity secret', { exact: true }).waitFor()
    await dialog.getByLabel(/I have stored it/).check()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('https://blog.example').first().waitFor()
    await page.getByRole('link', { name: 'Installations' }).first().click()
    await page.getByRole('button', { name: 'Disable Website' }).click()
    await dialog.getByText(/Every visitor session on this connection ends/).waitFor()
    await dialog.getByRole('button', { name: 'Disable connection' }).click()
    await page.getByRole('button', { name: 'Enable Website' }).waitFor()
    await close()
  })
})

describe('availability and translations in the console', () => {
  it('an operator can edit opening hours, exceptions, the override and whether an operator must be present', async () => {
    const { page, complaints, close } = await browser.open(core, 'installations/pk_shop')
    const card = page.getByRole('region', { name: 'Availability' })
    await card.getByLabel('Time zone').selectOption('Europe/Vienna')
    await card.getByRole('button', { name: 'Add hours on Monday' }).click()
    await card.getByLabel('Monday, from').fill('8')
    await card.getByLabel('Monday, to').fill('24:00')
    await card.getByRole('button', { name: 'Add exception' }).click()
    await card.getByLabel('Date 1').fill('2026-12-25')
    await card.getByRole('button', { name: 'Save opening hours' }).click()
    await until('the hours', () => core.workspace.installation('pk_shop').availability?.timeZone === 'Europe/Vienna')
    expect(core.workspace.installation('pk_shop').availability).toMatchObject({
      weeklyHours: { hours: [{ weekday: 1, from: '08:00', to: '24:00' }] },
      exceptions: { dates: [{ date: '2026-12-25', hours: [] }] },
    })
    await card.getByRole('radio', { name: 'Away' }).click()
    await card.getByLabel('Only while an operator is here').click()
    await until('the override', () => {
      const { mode, requiresOperator } = core.workspace.installation('pk_shop').availability ?? {}
      return mode === 'away' && requiresOperator === true
    })
    core.fault('UpdateInstallation', { code: Code.InvalidArgument, info: 'ValidationFailed' })
    await card.getByRole('button', { name: 'Save opening hours' }).click()
    await card.getByRole('alert').waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })

  it('an operator can add and remove translations; an invalid language tag is rejected', async () => {
    const { page, close } = await browser.open(core, 'installations/pk_shop')
    const card = page.getByRole('region', { name: 'Translations' })
    await card.getByRole('button', { name: 'Add language' }).click()
    await card.getByRole('textbox', { name: 'Language' }).fill('not a locale')
    await card.getByText(/Enter a language tag/).waitFor()
    await card.getByRole('textbox', { name: 'Language' }).fill('de-at')
    await card.getByLabel('Title').fill('Laden')
    await card.getByRole('button', { name: 'Save translations' }).click()
    const translations = () => core.workspace.installation('pk_shop').appearance!.translations
    await until('the translation', () => translations()['de-AT']?.title === 'Laden')
    await card.getByRole('button', { name: /^Remove de-/ }).click()
    await card.getByRole('button', { name: 'Save translations' }).click()
    await until('its removal', () => translations()['de-AT'] === undefined)
    await close()
  })
})
