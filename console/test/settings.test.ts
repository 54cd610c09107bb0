import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeAll)
const { core } = browser

const tab = (page: Page, name: string) => page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name })
const bar = (page: Page) => page.getByRole('region', { name: 'Unsaved changes' })
const title = (page: Page) => page.getByLabel('Title', { exact: true }).first()

describe('unsaved settings', () => {
  it('show a bar, which saves or discards them', async () => {
    const page = await browser.open(core, 'installations/pk_shop/look')
    await title(page).fill('Alpine')
    await bar(page).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await bar(page).getByRole('button', { name: 'Discard' }).click()
    await bar(page).waitFor({ state: 'detached' })
    expect(await title(page).inputValue()).toBe('Alpine Outfitters')
    expect(core.calls('UpdateInstallation')).toEqual([])
    await title(page).fill('Alpine')
    await bar(page).getByRole('button', { name: 'Save changes' }).click()
    await bar(page).waitFor({ state: 'detached' })
    expect(core.workspace.installation('pk_shop').appearance?.title).toBe('Alpine')
  })

  itLong('are not lost by a link, the back button or a reload without a question', async () => {
    const page = await browser.open(core, 'installations')
    await page.getByRole('link', { name: /shop\.example/ }).click()
    await tab(page, 'Privacy').click()
    const url = page.getByLabel('Policy URL')
    await url.fill('https://shop.example/privacy')
    const leave = page.getByRole('dialog', { name: 'Leave without saving?' })
    await tab(page, 'Look').click()
    await leave.getByRole('button', { name: 'Cancel' }).click()
    await page.evaluate(() => history.back())
    await leave.getByRole('button', { name: 'Cancel' }).click()
    expect(page.url()).toMatch(/\/privacy$/)
    const asked = page.waitForEvent('dialog')
    await page.evaluate(() => setTimeout(() => location.reload()))
    await (await asked).dismiss()
    expect(await url.inputValue()).toBe('https://shop.example/privacy')
    await tab(page, 'Look').click()
    await leave.getByRole('button', { name: 'Leave' }).click()
    await title(page).waitFor()
    await tab(page, 'Privacy').click()
    expect(await url.inputValue()).toBe('')
  })

  itLong('stay in the bar if the service rejects them', async () => {
    const page = await browser.open(core, 'installations/pk_shop/look')
    await title(page).fill('Rejected')
    core.fault('UpdateInstallation', { code: 3, info: 'ValidationFailed' })
    await bar(page).getByRole('button', { name: 'Save changes' }).click()
    await page.locator('.card [role=alert]').first().waitFor()
    await bar(page).waitFor()
  })
})

describe('forms', () => {
  itLong('begin with the usual fields', async () => {
    const page = await browser.open(core, 'installations/pk_shop/forms')
    const offline = page.getByRole('form', { name: 'Offline form' })
    await offline.getByRole('button', { name: /Use the usual fields/ }).click()
    await bar(page).getByRole('button', { name: 'Save changes' }).click()
    await until('the fields', () => core.workspace.installation('pk_shop').forms?.offline?.fields.length === 3)
    const fields = core.workspace.installation('pk_shop').forms!.offline!.fields
    expect(fields.map(({ name, required }) => [name, required])).toEqual([
      ['name', false],
      ['email', true],
      ['message', true],
    ])
  })
})

it('the console is shown in the language that the operator chooses in a browser, also after a reload', async () => {
  const page = await browser.open(core, 'team')
  await page.getByLabel('Language').selectOption('Deutsch')
  const inbox = page.getByRole('link', { name: /^Posteingang/ })
  await inbox.waitFor()
  await page.reload()
  await inbox.click()
  await page.getByLabel('Schlagwort').waitFor()
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('de')
})

it('the navigation of a phone shows whole names in German, with the tab of the open page', async () => {
  const page = await browser.open(core, 'deliveries', { locale: 'de-AT', viewport: { width: 360, height: 640 } })
  await page.getByRole('heading', { name: 'Zustellungen' }).waitFor()
  const cutNames = () =>
    page
      .locator('.area-name:visible')
      .evaluateAll((names) => names.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerHTML))
  expect(await cutNames()).toEqual([])
  await page.getByRole('button', { name: 'Mehr' }).click()
  expect(await cutNames()).toEqual([])
})

it('the console is shown in the language of the browser if the stored one is unknown, and in English if its texts do not load', async () => {
  const page = await browser.open(core, 'team', { locale: 'de-DE' })
  await page.evaluate(() => localStorage.setItem('service.console.language', 'xx'))
  await page.reload()
  await page.getByLabel('Sprache').waitFor()
  await page.route(/assets\/de-/, (route) => route.abort())
  await page.reload()
  await page.getByLabel('Language').waitFor()
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('en')
})
