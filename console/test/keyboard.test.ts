import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { type FakeCore, workspaceSession } from './fake-core.ts'
import { playScene } from './scene.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()
let core: FakeCore
beforeAll(async () => {
  core = await browser.newCore()
  await playScene(core)
})

const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? '')

/** Everything that Tab comes to, by role and name, from the page's beginning until it comes round. */
async function tabStops(page: Page): Promise<string[]> {
  const stops: string[] = []
  for (let step = 0; step < 80; step += 1) {
    await page.keyboard.press('Tab')
    const stop = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement
      if (!element || element === document.body) return ''
      const name = element.getAttribute('aria-label') ?? (element as HTMLInputElement).labels?.[0]?.textContent
      const shown = element.checkVisibility() && element.getBoundingClientRect().width > 0
      return `${shown ? '' : 'HIDDEN '}${element.tagName.toLowerCase()} ${(name ?? element.textContent ?? '').trim()}`
    })
    // Beyond the page's end is its beginning.
    if (stop === '') continue
    if (stops.length > 5 && stop === stops[0]) break
    stops.push(stop)
  }
  return stops
}

describe('without a pointer', () => {
  it('an operator signs in, finds, opens, answers, assigns, asks, and leaves', async () => {
    const { page, close } = await browser.open(core, 'conversations', { token: null })
    await page.getByRole('heading', { name: 'Workspace console' }).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.keyboard.insertText('not a token')
    await page.keyboard.press('Enter')
    await page.getByText(/This is not a workspace session/).waitFor()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText(workspaceSession())
    await page.keyboard.press('Tab')
    await page.keyboard.type('Ada')
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
    await page.getByRole('textbox', { name: 'Your answer' }).waitFor()
    await until('the heading', async () => (await focused(page)) === 'Maria Huber')
    await page.keyboard.press('r')
    await page.keyboard.type('From the keyboard')
    await page.keyboard.press('Enter')
    await page.locator('.message', { hasText: 'From the keyboard' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('a')
    await page.getByText(/Assigned to you/).waitFor()

    const stops = await tabStops(page)
    expect(stops.filter((stop) => stop.startsWith('HIDDEN'))).toEqual([])
    for (const name of [
      /Inbox/,
      /Sign out/,
      /Keyboard shortcuts/,
      /Unassign/,
      /Close/,
      /Your answer/,
      /Screenshot/,
      /Navigation/,
      /Revoke session/,
      /Ban visitor/,
    ])
      expect(
        stops.some((stop) => name.test(stop)),
        `${name} in ${stops.join(' | ')}`,
      ).toBe(true)

    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.keyboard.press('Escape')
    for (const [key, heading] of [
      ['l', 'Leads'],
      ['d', 'Deliveries'],
      ['s', 'Subscriptions'],
      ['n', 'Installations'],
    ] as const) {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await until(`the heading ${heading}`, async () => (await focused(page)) === heading)
    }
    await close()
  })

  it('single keys can be switched off, and stay so', async () => {
    const { page, close } = await browser.open(core, 'conversations')
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
    await close()
  })

  it('on a phone the list, the conversation and the details are pages with a way back', async () => {
    const { page, close } = await browser.open(core, 'conversations', { viewport: { width: 390, height: 844 } })
    await page.getByText('Maria Huber').first().click()
    await page.getByRole('textbox', { name: 'Your answer' }).waitFor()
    expect(await page.locator('.conversations').isVisible()).toBe(false)
    await page.getByRole('link', { name: 'Details of the visitor' }).click()
    await page.getByText('customer-4711').waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('link', { name: 'Back to the conversation' }).click()
    await page.getByRole('link', { name: 'Back to the list' }).click()
    await page.locator('.row').first().waitFor()
    await close()
  })
})
