import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { tabThrough } from '../../test/support/page-checks.ts'
import { until } from '../../test/support/until.ts'
import { workspaceSession } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeAll)
const { core } = browser

const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? '')

const walk = (page: Page) =>
  tabThrough({ evaluate: (expression) => page.evaluate(expression), press: (key) => page.keyboard.press(key) })

describe('the console, used with the keyboard only', () => {
  it('with the keyboard only, an operator can sign in, find, answer and assign a conversation, and change views', async () => {
    const page = await browser.open(core, 'conversations?queue=open', { token: null })
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    const token = page.getByLabel('Or paste a token')
    while (!(await token.evaluate((field) => field === document.activeElement))) await page.keyboard.press('Tab')
    await page.keyboard.insertText('not a token')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Ada')
    await page.keyboard.press('Enter')
    await page.getByText(/This token is not accepted/).waitFor()
    await token.and(page.locator(':focus')).waitFor()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText(workspaceSession())
    await page.keyboard.press('Enter')
    await page.getByText('Maria Huber').first().waitFor()

    await page.keyboard.press('j')
    expect(await focused(page)).toContain('Maria Huber')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('/')
    await until('the search', () => page.evaluate(() => document.activeElement?.getAttribute('type') === 'search'))
    await page.keyboard.type('huber')
    await until('one row', async () => (await page.locator('.row').count()) === 1)
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Reply' }).waitFor()
    await until('the heading', async () => /^Maria Huber\s*, verified$/.test(await focused(page)))
    await page.keyboard.press('a')
    await page.keyboard.press('r')
    await page.keyboard.type('From the keyboard')
    await page.keyboard.press('Enter')
    await page.locator('.message', { hasText: 'From the keyboard' }).waitFor()
    await page.keyboard.press('Escape')
    await page
      .locator('.thread-title')
      .getByText(/Assigned to you/)
      .waitFor()

    const { stops, missed, unseen } = await walk(page)
    expect({ missed, unseen }).toEqual({ missed: [], unseen: [] })
    for (const name of [
      /Inbox/,
      /Sign out/,
      /Keyboard shortcuts/,
      /Unassign/,
      /Close/,
      /Reply/,
      /Take a screenshot/,
      /Suggest a page/,
      /Revoke session/,
      /Ban visitor/,
    ])
      expect(
        stops.some((stop) => name.test(stop)),
        `${name} in ${stops.join(' | ')}`,
      ).toBe(true)

    // The focus may be in a text field now. The key would then be typed as text.
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    const [help] = await page.locator('.shortcuts').allTextContents()
    for (const name of await page.locator('.area-name').allTextContents()) expect(help).toContain(name)
    expect(await accessibilityFindings(page)).toEqual([])
    await page.keyboard.press('Escape')
    for (const [key, heading] of [
      ['l', 'Leads'],
      ['d', 'Deliveries'],
      ['s', 'Destinations'],
      ['n', 'Websites'],
    ] as const) {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await until(`the heading ${heading}`, async () => (await focused(page)) === heading)
    }
  })

  const viewports = [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]
  const views = [
    ['conversations?queue=open', 'Maria Huber'],
    ['conversations/cnv_maria/details', 'customer-4711'],
    ['leads', 'Li Wei'],
    ['leads/lead_maria', 'maria@example.org'],
    ['deliveries', 'Given up'],
    ['deliveries/dlv_1', 'Retry now'],
    ['subscriptions', '3 waiting'],
    ['subscriptions/new', 'Fields to send'],
    ['subscriptions/sub_old', 'Save changes'],
    ['installations', 'Website'],
    ['installations/pk_shop/hours', 'Opening hours'],
    ['nowhere', 'Page not found'],
  ] as const
  itLong.each(someOf(views, 1))(
    'Tab reaches every control of %s with a visible focus, on desktop and phone',
    async (path, shows) => {
      const page = await browser.open(core, path)
      for (const viewport of someOf(viewports, 1)) {
        await page.setViewportSize(viewport)
        await page.locator('main').getByText(shows).filter({ visible: true }).first().waitFor()
        const { stops, missed, unseen } = await walk(page)
        expect({ missed, unseen }).toEqual({ missed: [], unseen: [] })
        expect(stops.length).toBeGreaterThan(5)
      }
    },
  )

  const openers: [path: string, name: string, controls: string[]][] = [
    ['conversations/cnv_maria', 'Take a screenshot', ['Purpose', 'Send request', 'Cancel']],
    ['conversations/cnv_maria', 'Suggest a page', ['URL', 'Label', 'Send request', 'Cancel']],
    ['conversations/cnv_maria', 'Ban visitor', ['Close', 'Reason', 'Cancel', 'Ban visitor']],
    ['installations', 'New website', ['Close', 'Address', 'Title', 'Cancel']],
    ['subscriptions/sub_old', 'Rotate', ['Close', 'Previous secret expires', 'Cancel', 'Create new secret']],
  ]
  itLong.each(openers)(
    'in %s, Tab reaches every control that the button “%s” opens; Cancel or Escape restores the focus',
    async (path, name, names) => {
      const page = await browser.open(core, path)
      const opener = page.locator('main').getByRole('button', { name, exact: true })
      await opener.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Cancel' }).waitFor()
      const { stops, missed, unseen } = await walk(page)
      expect({ missed, unseen }).toEqual({ missed: [], unseen: [] })
      for (const wanted of names)
        expect(
          stops.some((stop) => stop.includes(wanted)),
          wanted,
        ).toBe(true)
      const isBack = () => opener.evaluate((element) => element === document.activeElement)
      await page.getByRole('button', { name: 'Cancel' }).press('Enter')
      await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' })
      await until('the focus, after Cancel', isBack)
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Cancel' }).waitFor()
      await page.keyboard.press('Escape')
      await until('the focus, after Escape', isBack)
    },
  )
})

itLong('single-key shortcuts can be turned off and stay off after a reload', async () => {
  const page = await browser.open(core, 'conversations?queue=open')
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
  await page.getByRole('switch', { name: 'Single-key shortcuts' }).press('Space')
  await page.keyboard.press('Escape')
  await page.reload()
  await page.getByText('Maria Huber').first().waitFor()
  await page.keyboard.press('?')
  await page.keyboard.press('g')
  await page.keyboard.press('l')
  expect(await page.getByRole('dialog').count()).toBe(0)
  expect(page.url()).toContain('/conversations')
})

itLong('on a phone, the list, the conversation and the details are separate pages with back links', async () => {
  const page = await browser.open(core, 'conversations?queue=open', { viewport: { width: 390, height: 844 } })
  await page.getByText('Maria Huber').first().click()
  await page.getByRole('textbox', { name: 'Reply' }).waitFor()
  expect(await page.locator('.conversations').isVisible()).toBe(false)
  await page.getByRole('link', { name: 'Visitor details' }).click()
  await page.getByText('customer-4711').waitFor()
  expect(await accessibilityFindings(page)).toEqual([])
  await page.getByRole('link', { name: 'Back to the conversation' }).click()
  await page.getByRole('link', { name: 'Back to the list' }).click()
  await page.locator('.row').first().waitFor()
})
