import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { workspaceSession } from './fake-core.ts'
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
    // Wherever the page is scrolled, none of its content may show below the bar with the save button.
    const { x, y, width, height } = (await bar(page).boundingBox())!
    const below = { x: x + 2, y: y + height, width: width - 4, height: 900 - y - height }
    const shots: Buffer[] = []
    for (const top of [0, 80, 160, 240]) {
      await page.locator('main').evaluate((main, top) => main.scrollTo(0, top), top)
      if (below.height > 0) shots.push(await page.screenshot({ clip: below }))
    }
    expect(new Set(shots.map((shot) => shot.toString('base64'))).size).toBeLessThanOrEqual(1)
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
  it('begin with the usual fields, whose labels do not follow the language of the operator', async () => {
    const page = await browser.open(core, 'installations/pk_shop/forms', { locale: 'de-AT' })
    const offline = page.getByRole('form', { name: 'Offline-Formular' })
    await offline.getByRole('button', { name: /Übliche Felder/ }).click()
    await page.getByRole('button', { name: 'Änderungen speichern' }).click()
    await until('the fields', () => core.workspace.installation('pk_shop').forms?.offline?.fields.length === 3)
    const fields = core.workspace.installation('pk_shop').forms!.offline!.fields
    expect(fields.map(({ name, label, required }) => [name, label, required])).toEqual([
      ['name', 'Name', false],
      ['email', 'E-mail', true],
      ['message', 'Message', true],
    ])
  })
})

const teamPages = [
  ['en', 'workspaces:read workspaces:write', ['Everyone', 'Members', 'Invite a colleague', 'Sessions', 'You']],
  ['de', 'workspaces:read', ['Alle', 'Mitglieder', 'Sie selbst', 'Dieser Browser', 'Sitzungen']],
] as const
it.each(someOf(teamPages, 1))(
  'the page of the team has what is of everyone apart from what is of you, in %s, with %s',
  async (locale, scope, titles) => {
    const page = await browser.open(core, 'team', { locale, token: workspaceSession({ scope }) })
    const headings = page.locator('main h2')
    const invitations = ['Open invitations', 'Offene Einladungen']
    await expect
      .poll(async () => (await headings.allTextContents()).filter((title) => !invitations.includes(title)).slice(0, 5))
      .toEqual(titles)
  },
)

it('the console is shown in the language that the operator chooses in a browser, also after a reload', async () => {
  const page = await browser.open(core, 'team')
  await page.getByLabel('Language').selectOption('Deutsch')
  const inbox = page.getByRole('link', { name: /^Posteingang/ })
  await inbox.waitFor()
  await page.reload()
  await inbox.click()
  await page.getByLabel('Schlagwort').waitFor()
  await page.goto(`${core.url}/console/leads`)
  await page.getByText('Nachricht: Do you have it').waitFor()
  await page.getByRole('link', { name: /Maria Huber/ }).click()
  const names = page.getByRole('region', { name: 'Details' }).locator('dt')
  await names.first().waitFor()
  expect((await names.allTextContents()).slice(0, 3)).toEqual(['Name', 'E-Mail', 'Nachricht'])
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('de')
})

itLong.each([320, 390])(
  'the navigation of a phone of %s px has four tabs and More, which stay in place and do not touch in German',
  async (width) => {
    const page = await browser.open(core, 'leads', { locale: 'de-AT', viewport: { width, height: 640 } })
    await page.getByRole('heading', { name: 'Leads' }).waitFor()
    const more = page.getByRole('button', { name: 'Mehr' })
    /** The left and right edge of each label's text. */
    const labels = () =>
      page.locator(':is(.area-name, .more-tab):visible').evaluateAll((elements) =>
        elements.map((element) => {
          const range = document.createRange()
          range.selectNodeContents(element)
          const { x, right, bottom } = range.getBoundingClientRect()
          return { text: element.textContent, x, right, bottom }
        }),
      )
    const touching = async () =>
      (await labels()).filter(({ x, right, bottom, text }, _, all) =>
        all.some((other) => other.text !== text && other.bottom === bottom && other.x >= x && other.x < right + 4),
      )
    const closed = await labels()
    expect(closed.map(({ text }) => text)).toEqual(['Posteingang', 'Bericht', 'Leads', 'Websites', 'Mehr'])
    expect(await touching()).toEqual([])
    expect(await more.getAttribute('aria-current')).toBeNull()
    await more.click()
    expect(await touching()).toEqual([])
    expect(await labels()).toEqual(expect.arrayContaining(closed))
    await page.getByRole('link', { name: 'Personendaten' }).click()
    await page.getByRole('heading', { name: 'Personendaten' }).waitFor()
    expect(await labels()).toEqual(closed)
    expect(await more.getAttribute('aria-current')).toBe('true')
  },
)

itLong(
  'the tab of the open settings is in view on a phone, and another one that is cut shows that there are more',
  async () => {
    const page = await browser.open(core, 'installations/pk_shop/keys', {
      locale: 'de-AT',
      viewport: { width: 390, height: 844 },
    })
    const tabs = page.locator('.tabs')
    await tabs.waitFor()
    /** Widths of the tabs that are outside of the row at its left and at its right. */
    const hidden = (name: string) =>
      tabs.evaluate((row, name) => {
        const [link] = [...row.querySelectorAll('a')].filter(({ textContent }) => textContent === name)
        const [outer, inner] = [row.getBoundingClientRect(), link!.getBoundingClientRect()]
        return Math.max(0, outer.left - inner.left) + Math.max(0, inner.right - outer.right)
      }, name)
    await until('the last tab is in view', async () => (await hidden('Identität')) === 0)
    await page.goto(`${core.url}/console/installations/pk_shop/forms`)
    await until('the tab in the middle is in view', async () => (await hidden('Formulare')) === 0)
    expect(await hidden('Einbau')).toBeGreaterThan(0)
    expect(await tabs.evaluate((row) => getComputedStyle(row).maskImage)).toContain('gradient')
  },
)

itLong(
  'the console is shown in the language of the browser if the stored one is unknown, and in English if its texts do not load',
  async () => {
    const page = await browser.open(core, 'team', { locale: 'de-DE' })
    await page.evaluate(() => localStorage.setItem('service.console.language', 'xx'))
    await page.reload()
    await page.getByLabel('Sprache').waitFor()
    await page.route(/assets\/de-/, (route) => route.abort())
    await page.reload()
    await page.getByLabel('Language').waitFor()
    expect(await page.evaluate(() => document.documentElement.lang)).toBe('en')
  },
)
