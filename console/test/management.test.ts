import { isDeepStrictEqual } from 'node:util'
import { Code } from '@connectrpc/connect'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

describe('leads in the console', () => {
  itLong(
    'the page of a lead sends it to a destination and links to its conversation; the list shows HTML in a lead as text',
    async () => {
      core.leads.addLead({ leadId: 'lead_evil', source: 'offline-form', fields: { name: '<b onclick=x>Bold</b>' } })
      const page = await browser.open(core, 'leads')
      await page.getByText('<b onclick=x>Bold</b>', { exact: true }).waitFor()
      await page.getByRole('link', { name: /Maria Huber/ }).click()
      await page.getByRole('button', { name: 'Send lead' }).click()
      await until(
        'one more delivery',
        () => core.leads.attempts.filter(({ leadId }) => leadId === 'lead_maria').length === 3,
      )
      await page.getByRole('link', { name: 'Open conversation' }).click()
      await page.getByText('And if it does not fit?').first().waitFor()
    },
  )
})

const save = (page: Page) => page.getByRole('button', { name: 'Save changes' }).click()
/** Opens a tab of the settings when the changes of the last one are saved: before, the console asks. */
async function openTab(page: Page, name: string) {
  await page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
  await page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name }).click()
}

describe('websites in the console', () => {
  it('an installation rejects invalid origins, and stores new origins, appearance, capabilities, form fields and a new secret', async () => {
    const page = await browser.open(core, 'installations/pk_shop')
    const origins = page.getByRole('textbox', { name: 'Addresses' })
    for (const [entry, says] of [
      ['https://*.com', /a full domain/],
      ['a shop', /Enter the address of a site/],
    ] as const) {
      await origins.fill(entry)
      await page.keyboard.press('Enter')
      await page.getByText(says).waitFor()
    }
    await origins.fill('new.example/shop')
    await page.keyboard.press('Enter')
    await until('the origin', () => core.workspace.installation('pk_shop').origins.includes('https://new.example'))
    await page.getByRole('button', { name: 'Remove https://*.shop.example' }).click()
    await until('it is gone', () => core.workspace.installation('pk_shop').origins.length === 2)
    // While a change is stored, no other change can undo it.
    const { promise: held, resolve: answer } = Promise.withResolvers<void>()
    await page.route('**/UpdateInstallation', async (route) => {
      await held
      await route.continue()
    })
    await origins.fill('https://third.example')
    await page.keyboard.press('Enter')
    const remove = page.getByRole('button', { name: 'Remove https://new.example' })
    await expect.poll(() => remove.isDisabled()).toBe(true)
    await origins.fill('https://fourth.example')
    await page.keyboard.press('Enter')
    expect(await origins.inputValue()).toBe('https://fourth.example')
    await origins.fill('')
    answer()
    await remove.click()
    await until('both changes are stored', () =>
      isDeepStrictEqual(core.workspace.installation('pk_shop').origins.slice(1), ['https://third.example']),
    )
    await openTab(page, 'Look')
    const accent = page.getByRole('textbox', { name: 'Accent colour', exact: true })
    for (const [color, background] of [
      ['#fafafa', 'light'],
      ['#15171c', 'dark'],
    ]) {
      await accent.fill(color!)
      await page.getByText(`Hardly visible on the ${background} background`).waitFor()
    }
    await accent.fill('#aa3311')
    await page.getByText('Hardly visible').waitFor({ state: 'detached' })
    await save(page)
    await until('the colour', () => core.workspace.installation('pk_shop').appearance?.accentColor === '#aa3311')
    await openTab(page, 'Forms')
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
    await offline.getByText('More', { exact: true }).click()
    await offline.getByLabel('Max length').fill('80')
    await save(page)
    await until(
      'the field',
      () => core.workspace.installation('pk_shop').forms?.offline?.fields[0]?.name === 'your_name',
    )
    expect(core.workspace.installation('pk_shop').forms?.offline?.fields[0]?.maxLength).toBe(80)
    await page.reload()
    await offline.getByText('More', { exact: true }).click()
    expect(await offline.getByLabel('Max length').inputValue()).toBe('80')
    await openTab(page, 'Identity')
    await page.getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('button', { name: 'Create new secret' }).click()
    await page.getByLabel(/I have stored it/).check()
    await page.getByRole('button', { name: 'Done' }).click()
    await until('two keys', () => core.workspace.installation('pk_shop').identityKeyIds.length === 2)
  })

  itLong('an origin that the service does not store is put back into the field', async () => {
    const page = await browser.open(core, 'installations/pk_shop')
    const field = page.getByRole('textbox', { name: 'Addresses' })
    core.fault('UpdateInstallation', { code: Code.Unavailable })
    await field.fill('https://more.example')
    await field.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await field.inputValue()).toBe('https://more.example')
    await field.press('Enter')
    await until('the origin', () => core.workspace.installation('pk_shop').origins.includes('https://more.example'))
    expect(await field.inputValue()).toBe('')
  })

  it('two websites of one host have names, by which lists, titles and filters tell them apart', async () => {
    const { $typeName: _, ...shop } = core.workspace.installation('pk_shop')
    core.workspace.addInstallation({ ...shop, publicSiteKey: 'pk_sale' })
    const page = await browser.open(core, 'installations/pk_sale')
    await page.getByRole('textbox', { name: 'Name' }).fill('Sale')
    await save(page)
    await page.getByRole('heading', { level: 1, name: 'Sale' }).waitFor()
    expect(core.calls('UpdateInstallation')).toMatchObject([{ siteKey: 'pk_sale', name: 'Sale' }])
    await page.getByRole('link', { name: 'Websites' }).first().click()
    await page.getByRole('link', { name: /Sale.*https:\/\/shop\.example/ }).waitFor()
    await page.getByRole('link', { name: /Alpine Outfitters/ }).waitFor()
    await page.goto(`${core.url}/console/subscriptions/new`)
    await page.getByLabel('Website', { exact: true }).selectOption('Sale')
  })

  itLong(
    'adds a website with the offline form and no secret; several connections are shown, and can be disabled',
    async () => {
      const page = await browser.open(core, 'installations')
      const connection = page.getByRole('region', { name: 'Website' })
      await page.getByRole('link', { name: /Alpine Outfitters/ }).waitFor()
      expect(await connection.count()).toBe(0)
      await page.getByRole('button', { name: 'New website' }).click()
      const dialog = page.getByRole('dialog')
      const field = dialog.getByLabel('Address')
      await until('the focus', () => field.evaluate((element) => element.matches(':focus')))
      await page.keyboard.type('our blog')
      await page.keyboard.press('Enter')
      await dialog.getByText('Enter the address of a site, for example shop.example.').waitFor()
      await field.fill('blog.example')
      await page.keyboard.press('Enter')
      await page.getByText(/data-site-key="pk_2"/).waitFor()
      expect(core.calls('CreateInstallation')).toMatchObject([
        {
          connectionId: 'con_site',
          origins: ['https://blog.example'],
          availability: { requiresOperator: true },
          capabilities: { offlineForm: true },
        },
      ])
      core.workspace.addConnection({ connectionId: 'con_app', name: 'App' })
      await page.getByRole('link', { name: 'Websites' }).first().click()
      await connection.getByRole('button', { name: 'Disable Website' }).click()
      await dialog.getByText(/Every visitor session on this connection ends/).waitFor()
      await dialog.getByRole('button', { name: 'Disable connection' }).click()
      await page.getByRole('button', { name: 'Enable Website' }).waitFor()
    },
  )
})

it('the changes name the members, also former ones, and show a form as its labels', async () => {
  const page = await browser.open(core, 'workspace/changes')
  await page.getByText('Offline form: Your e-mail').waitFor()
  await page.getByText('by Jonas Berg').waitFor()
  await page.getByText('by Ada').first().waitFor()
  expect(await page.locator('main').innerText()).not.toMatch(/[{[]"|op_|ada@/)
})

describe('availability and translations in the console', () => {
  itLong(
    'an operator can edit opening hours, exceptions, the override and whether an operator must be present',
    async () => {
      const page = await browser.open(core, 'installations/pk_shop/hours')
      const card = page.getByRole('region', { name: 'Availability' })
      await card.getByLabel('Time zone').selectOption('Europe/Vienna')
      await card.getByRole('button', { name: 'Add hours on Monday' }).click()
      await card.getByLabel('Monday, from').fill('8')
      await card.getByLabel('Monday, to').fill('24:00')
      await card.getByRole('button', { name: 'Add exception' }).click()
      await card.getByLabel('Date 1').fill('2026-12-25')
      await save(page)
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
      await card.getByLabel('Monday, to').fill('20:00')
      await save(page)
      await card.getByRole('alert').waitFor()
      expect(await accessibilityFindings(page)).toEqual([])
    },
  )

  itLong('an operator can add and remove translations; an invalid language tag is rejected', async () => {
    const page = await browser.open(core, 'installations/pk_shop')
    await openTab(page, 'Look')
    const card = page.getByRole('region', { name: 'Translations' })
    await card.getByRole('button', { name: 'Add language' }).click()
    await card.getByRole('textbox', { name: 'Language' }).fill('not a locale')
    await card.getByText(/Enter a language tag/).waitFor()
    await card.getByRole('textbox', { name: 'Language' }).fill('de-at')
    await save(page)
    await card.getByText(/Enter a text, or remove/).waitFor()
    expect(core.calls('UpdateInstallation')).toHaveLength(0)
    await card.getByLabel('Title').fill('Laden')
    await save(page)
    const look = () => core.workspace.installation('pk_shop').appearance!
    const translations = () => look().translations
    await until('the translation', () => translations()['de-AT']?.title === 'Laden')
    const german = card.getByLabel('Opening replies')
    await german.fill(' Wo ist meine Bestellung? \n \nEin Mensch, bitte')
    await card.getByLabel('Title').fill('')
    await save(page)
    const texts = ['Wo ist meine Bestellung?', 'Ein Mensch, bitte']
    await until('replies alone', () => translations()['de-AT']?.title === '')
    expect(translations()['de-AT']?.openingReplies?.texts).toEqual(texts)
    await openTab(page, 'Hours')
    await openTab(page, 'Look')
    await until('the saved replies', async () => (await german.inputValue()) === texts.join('\n'))
    await card.getByRole('button', { name: /^Remove de-/ }).click()
    await save(page)
    await until('its removal', () => translations()['de-AT'] === undefined)
    const replies = page.getByRole('region', { name: 'Appearance' }).getByLabel('Opening replies')
    await replies.fill('Where is my order?\n \nA person, please')
    await save(page)
    const shown = () => look().openingReplies?.texts.join(' | ')
    await until('the replies', () => shown() === 'Where is my order? | A person, please')
    await replies.fill('')
    await save(page)
    await until('their removal', () => shown() === '')
  })
})
