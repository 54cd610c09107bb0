import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt'
import { Code } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

describe('deliveries in the console', () => {
  itLong(
    'a double click retries a delivery once; a later click retries it again with a new idempotency key',
    async () => {
      const page = await browser.open(core, 'deliveries/dlv_1')
      await page.getByRole('button', { name: 'Retry now' }).dblclick()
      await page.locator('.attempt').nth(2).waitFor()
      expect(core.calls('RetryDeliveryAttempt')).toHaveLength(1)
      core.leads.attempts.at(-1)!.status = 6
      await page.getByRole('button', { name: 'Retry now' }).click()
      await page.locator('.attempt').nth(3).waitFor()
      const keys = core.calls('RetryDeliveryAttempt').map(({ idempotencyKey }) => idempotencyKey)
      expect(new Set(keys).size).toBe(2)
    },
  )

  itLong(
    'a delivery gets only one new attempt if the response to a retry is lost and the operator clicks again',
    async () => {
      const page = await browser.open(core, 'deliveries/dlv_1')
      core.fault('RetryDeliveryAttempt', { code: Code.Unavailable, afterwards: true })
      const button = page.getByRole('button', { name: 'Retry now' })
      await button.click()
      await page.getByText(/cannot be reached/).waitFor()
      // Clicks again before the list has been reloaded.
      if (await button.isVisible()) await button.click({ timeout: 1000 }).catch(() => {})
      await page.locator('.attempt').nth(2).waitFor()
      expect(core.leads.attempts.filter(({ deliveryId }) => deliveryId === 'dlv_1')).toHaveLength(3)
    },
  )

  itLong('deliveries show the names of their leads, and the id of a lead that cannot be read', async () => {
    core.leads.addLead({ leadId: 'lead_odd', source: 'api', fields: { name: '<b>Odd</b> \u202e' } })
    for (const [deliveryId, leadId] of [
      ['dlv_odd', 'lead_odd'],
      ['dlv_gone', 'lead_gone'],
    ])
      core.leads.addAttempt({ deliveryId, leadId, subscriptionId: 'sub_crm', attemptId: `att_${deliveryId}` })
    const page = await browser.open(core, 'deliveries')
    for (const title of ['Maria Huber', '<b>Odd</b>', 'lead_gone'])
      await page.locator('.table-sub', { hasText: title }).first().waitFor()
    await page.locator('.table-row', { hasText: 'Maria Huber' }).first().click()
    await page.getByRole('link', { name: 'Maria Huber' }).click()
    await page.getByRole('heading', { name: 'Maria Huber' }).waitFor()
  })

  itLong(
    'a delivery that was not tried yet shows no attempt number, and its ID for support is under More',
    async () => {
      core.leads.addAttempt({ deliveryId: 'dlv_new', leadId: 'lead_li', subscriptionId: 'sub_crm' })
      const page = await browser.open(core, 'deliveries')
      const row = page.locator('.table-row', { hasText: 'Pending' })
      await row.getByText('Li Wei').waitFor()
      expect(await row.textContent()).not.toContain('attempt')
      await page.getByText('connection refused, while connecting · attempt 2 · ').waitFor()
      await row.click()
      const attempt = page.locator('.attempt')
      await attempt.getByText('Pending').waitFor()
      expect(await attempt.locator('.attempt-number').textContent()).toBe('')
      expect(await attempt.innerText()).not.toContain('cor_')
      await attempt.getByText('More').click()
      await attempt.getByText('ID for support cor_4').waitFor()
    },
  )

  itLong('a lead that was not sent says what to do once, also while no destination is enabled', async () => {
    core.leads.addLead({ leadId: 'lead_new', source: 'offline-form', fields: { name: 'Ida' } })
    const page = await browser.open(core, 'leads/lead_new')
    await page.getByRole('button', { name: 'Send lead' }).waitFor()
    core.leads.subscription('sub_crm').status = SubscriptionStatus.DISABLED
    await page.reload()
    await page.getByText('To send this lead, add or enable a destination').waitFor()
    expect(await page.locator('.empty').textContent()).toBe('Not sent yet')
  })

  itLong('deliveries can be filtered by status and time, and the URL contains the filter', async () => {
    const page = await browser.open(core, 'deliveries')
    await page
      .getByText(/^Given up/)
      .last()
      .waitFor()
    await page.getByLabel('Status').selectOption('accepted')
    await until('one row', async () => (await page.locator('.table-row').count()) === 1)
    expect(page.url()).toMatch(/\/console\/deliveries\?status=accepted$/)
    await page.goBack()
    await until('both rows', async () => (await page.locator('.table-row').count()) === 2)
    const from = Date.now() - 3_600_000
    await page.getByLabel('Created').selectOption('Last hour')
    const lists = (): { createdSince?: Timestamp }[] => core.calls('ListDeliveries')
    const sinceOf = () => lists().at(-1)?.createdSince
    await until('a call with the time', () => sinceOf() !== undefined)
    const createdSince = sinceOf()!
    expect(timestampMs(createdSince)).toBeGreaterThanOrEqual(from)
    expect(timestampMs(createdSince)).toBeLessThanOrEqual(Date.now() - 3_600_000)
    expect(page.url()).toMatch(/\/console\/deliveries\?hours=1$/)
  })
})

describe('lead subscriptions in the console', () => {
  it('the secret of a new lead subscription is shown once, until the operator confirms that it is stored', async () => {
    const page = await browser.open(core, 'subscriptions/new')
    const address = page.getByLabel('Destination URL')
    await address.fill('https://user:secret@hooks.example.com/')
    await page.getByRole('button', { name: 'Create destination' }).click()
    await page.getByText(/Remove the user name and password/).waitFor()
    await address.fill('https://intranet.example/leads')
    core.fault('CreateSubscription', {
      code: Code.InvalidArgument,
      info: 'ValidationFailed',
      issues: [{ path: '/destinationUrl', rule: 'publicAddress' }],
    })
    await page.getByRole('button', { name: 'Create destination' }).click()
    await until('the focus', () => address.evaluate((element) => element.matches(':focus')))
    expect(await address.getAttribute('aria-invalid')).toBe('true')
    const described = (await address.getAttribute('aria-describedby'))!.split(' ').at(-1)
    expect(await page.locator(`[id="${described}"]`).textContent()).toMatch(/must have a public address.*\.$/)
    await address.fill('https://hooks.example.com/leads')
    const field = page.getByRole('combobox', { name: 'Fields to send' })
    await field.fill('reference')
    await page.keyboard.press('Enter')
    await page.getByText(/“reference” is always sent/).waitFor()
    await field.fill('phone')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Create destination' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByLabel('Secret').inputValue()).toBe('whsec_new1c2VjcmV0')
    expect(await accessibilityFindings(page)).toEqual([])
    // Chromium lets a page prevent only the first of several requests to close.
    for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press('Escape')
    await dialog.getByLabel(/I have stored it/).check()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('heading', { level: 1, name: 'hooks.example.com' }).waitFor()
    expect(await page.content()).not.toContain('whsec_new1c2VjcmV0')
    expect(core.calls('CreateSubscription').slice(1)).toMatchObject([
      { mappedFields: ['email', 'phone'], automatic: true },
    ])
  })

  itLong(
    'a disabled lead subscription shows the reason; an operator can enable and change it, rotate its secret and disable it again',
    async () => {
      const page = await browser.open(core, 'subscriptions/sub_old')
      await page.getByText(/3 deliveries wait/).waitFor()
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
      await dialog.getByText(/Deliveries wait, and are sent when you enable it again/).waitFor()
      await dialog.getByRole('button', { name: 'Disable' }).click()
      await page.getByText(/An operator disabled it/).waitFor()
      expect(core.leads.subscription('sub_old').status).toBe(SubscriptionStatus.DISABLED)
    },
  )
})

describe('an enabled lead subscription', () => {
  itLong('lets an operator activate the new secret, add a header, recover deliveries and send a test', async () => {
    const page = await browser.open(core, 'subscriptions/sub_crm')
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
    await page.getByText('Test', { exact: true }).waitFor()
  })
})

describe('a lead field that is typed but not added', () => {
  itLong('is saved with the form if it is valid, and otherwise prevents saving', async () => {
    const page = await browser.open(core, 'subscriptions/sub_old')
    const entry = page.getByRole('combobox', { name: 'Fields to send' })
    await page.getByLabel('Destination URL').fill('https://new.example.com/in')
    await entry.fill('not a field')
    // The click moves the focus out of the field, and the error must not move the button away.
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('alert').waitFor()
    await until('the focus in the field', () => entry.evaluate((field) => field === document.activeElement))
    expect(core.calls('UpdateSubscription')).toHaveLength(0)
    expect(await entry.inputValue()).toBe('not a field')
    await entry.fill('company')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await until('the field', () => core.leads.subscription('sub_old').mappedFields.includes('company'))
  })

  itLong('stays in the form when another card of the page is saved', async () => {
    const page = await browser.open(core, 'subscriptions/sub_old')
    await page.getByLabel('Destination URL').fill('https://half.example.com')
    await page.getByRole('button', { name: 'Enable' }).click()
    await page.getByText('Enabled. Leads are sent.').waitFor()
    expect(await page.getByLabel('Destination URL').inputValue()).toBe('https://half.example.com')
  })
})

describe('two destinations on one host', () => {
  itLong('are told apart by their names in lists, filters and deliveries; a name can be removed', async () => {
    const destinationUrl = 'https://crm.example.com/••••'
    core.leads.addSubscription({ subscriptionId: 'sub_two', destinationUrl, name: 'Newsletter' })
    core.leads.addAttempt({ deliveryId: 'dlv_two', leadId: 'lead_1', subscriptionId: 'sub_two' })
    const page = await browser.open(core, 'subscriptions/sub_crm')
    const name = page.getByLabel('Name', { exact: true })
    await name.fill(' Sales ')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sales' }).waitFor()
    await page.getByRole('link', { name: 'Destinations' }).first().click()
    for (const title of ['Sales', 'Newsletter'])
      await page.locator('.table-row', { hasText: 'crm.example.com' }).getByText(title, { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Deliveries' }).first().click()
    for (const title of ['Sales', 'Newsletter']) await page.locator('.table-row', { hasText: title }).first().waitFor()
    await page.getByLabel('Destination').selectOption('Newsletter')
    await page.locator('.table-row', { hasText: 'Newsletter' }).click()
    await page.getByRole('link', { name: 'Newsletter' }).click()
    await page.getByRole('heading', { level: 1, name: 'Newsletter' }).waitFor()
    await name.fill('')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('heading', { level: 1, name: 'crm.example.com' }).waitFor()
  })
})

describe('changes of lead subscriptions', () => {
  itLong(
    'a secret rotation is retried with the same idempotency key if the response is lost; the next rotation has a new key',
    async () => {
      const page = await browser.open(core, 'subscriptions/sub_old')
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
    },
  )

  it('a new destination at another host removes the custom headers, and the page names them until headers are set', async () => {
    const page = await browser.open(core, 'subscriptions/sub_crm')
    const address = page.getByLabel('Destination URL')
    expect([await address.inputValue(), await address.getAttribute('placeholder')]).toEqual([
      '',
      'https://crm.example.com/••••',
    ])
    await page.getByLabel('Disable after this many 404').fill('0')
    const save = page.getByRole('button', { name: 'Save changes' })
    const before = await save.elementHandle()
    await save.click()
    // The page replaces the form when it has read the saved subscription.
    await before!.waitForElementState('hidden')
    await page.getByText('x-tenant: ••••').waitFor()
    await address.fill('https://new.example.com/in')
    await save.click()
    await page.getByText('these headers were removed').waitFor()
    expect(await page.getByText('x-tenant: ••••').count()).toBe(0)
    expect(core.calls('UpdateSubscription')).toMatchObject([
      { disableAfterNotFound: 0 },
      { destinationUrl: 'https://new.example.com/in' },
    ])
    await page.getByLabel('Header name').fill('X-New')
    await page.getByLabel('Header value').fill('1')
    await page.getByRole('button', { name: 'Save header' }).click()
    await page.getByText('x-new: ••••').waitFor()
    expect(await page.getByText('these headers were removed').count()).toBe(0)
  })

  itLong('a change of a lead subscription or an installation sends only the edited fields', async () => {
    const page = await browser.open(core, 'subscriptions/sub_old')
    await page.getByLabel('Destination URL').fill('https://new.example.com/in')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('heading', { level: 1, name: 'new.example.com' }).waitFor()
    const [subscription] = core.calls('UpdateSubscription')
    const { destinationUrl, automatic, mappedFields } = subscription!
    expect([destinationUrl, automatic, mappedFields]).toEqual(['https://new.example.com/in', undefined, undefined])

    const installation = await browser.open(core, 'installations/pk_shop/look')
    await installation.getByRole('textbox', { name: 'Accent colour', exact: true }).fill('#aa3311')
    await installation.getByRole('button', { name: 'Save changes' }).click()
    await until('the colour', () => core.workspace.installation('pk_shop').appearance?.accentColor === '#aa3311')
    expect(core.calls('UpdateInstallation')).toMatchObject([
      { appearance: { accentColor: '#aa3311', title: '', greeting: '', position: '' }, origins: [] },
    ])
  })
})
