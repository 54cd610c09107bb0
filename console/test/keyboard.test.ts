import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { workspaceSession } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeAll)
const { core } = browser

const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? '')

interface Walk {
  /** Tag and name of the elements that the Tab key reaches, in order. */
  stops: string[]
  /** Usable elements that the Tab key does not reach. */
  missed: string[]
  /** Elements that the Tab key reaches although they are hidden or show no focus indicator. */
  unseen: string[]
}

interface Stop {
  key: string
  text: string
  visible: boolean
  marked: boolean
}

/** Presses Tab through the page and compares the reached elements with all usable elements. */
async function walk(page: Page): Promise<Walk> {
  await page.evaluate(() => {
    for (const element of document.querySelectorAll<HTMLElement>('[data-walk]')) delete element.dataset.walk
    const usable = 'a[href], summary, button:not([disabled]), input:not([disabled]), select, textarea, [tabindex="0"]'
    const within = document.querySelector('dialog[open]') ?? document.body
    const wanted = [...within.querySelectorAll<HTMLElement>(usable)].filter(
      // Tab reaches only the checked radio button of a group; the arrow keys reach the others.
      (element) => element.checkVisibility() && !(element.matches('[type=radio]') && !element.matches(':checked')),
    )
    for (const [index, element] of wanted.entries()) element.dataset.walk = String(index)
    ;(document.activeElement as HTMLElement | null)?.blur()
  })
  // The page records each focused element, so that the test can press Tab several times before it reads them.
  await page.evaluate(() => {
    const scope = globalThis as { record?: Stop[] }
    if (scope.record) return
    const record: Stop[] = []
    scope.record = record
    document.addEventListener('focusin', ({ target }) => {
      const element = target as HTMLElement
      const name = element.getAttribute('aria-label') ?? (element as HTMLInputElement).labels?.[0]?.textContent
      const shows = (part: Element | null) => part !== null && getComputedStyle(part).outlineStyle !== 'none'
      // Elements that appear while Tab is pressed must also be reached.
      element.dataset.walk ??= `late ${record.length}`
      record.push({
        key: element.dataset.walk,
        text: `${element.tagName.toLowerCase()} ${(name ?? element.textContent ?? '').trim()}`,
        visible: element.checkVisibility() && element.getBoundingClientRect().width > 0,
        marked: shows(element) || shows(element.nextElementSibling),
      })
    })
  })
  const stops = new Map<string, Stop>()
  for (let presses = 0, isRound = false; presses < 150 && !isRound; presses += 10) {
    for (let press = 0; press < 10; press += 1) await page.keyboard.press('Tab')
    const record = await page.evaluate(() => (globalThis as unknown as { record: Stop[] }).record.splice(0))
    for (const stop of record) {
      isRound ||= stops.has(stop.key)
      if (!isRound) stops.set(stop.key, stop)
    }
  }
  const missed = await page.evaluate(
    (keys) =>
      [...document.querySelectorAll<HTMLElement>('[data-walk]')]
        .filter((element) => !keys.includes(element.dataset.walk!))
        .map((element) => element.outerHTML.slice(0, 120)),
    [...stops.keys()],
  )
  const unseen = [...stops.values()].filter(({ visible, marked }) => !visible || !marked)
  return { stops: [...stops.values()].map(({ text }) => text), missed, unseen: unseen.map(({ text }) => text) }
}

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
