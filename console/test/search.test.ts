import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, it } from 'vitest'
import { isLong, itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { workspaceSession } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

async function search(page: Page, text: string) {
  await page.getByRole('searchbox').fill(text)
  await page.locator('.search-filters').waitFor()
}

const rows = (page: Page) => page.getByRole('list', { name: 'Search results' }).getByRole('link')
const focusedText = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? '')

describe('a session without scopes of data', () => {
  itLong('says in the search and in a conversation what it does not show; a full session says nothing', async () => {
    const hint = /does not have permission to show/
    const limited = await browser.open(core, 'conversations/cnv_maria', {
      token: workspaceSession({ scope: 'messages:read messages:write' }),
    })
    const details = limited.getByRole('complementary', { name: 'Visitor details' })
    await details.getByText(hint).waitFor()
    expect(await details.getByText(hint).textContent()).toBe(
      'Your session does not have permission to show names, pages and sessions of visitors, leads and contact details, requests to the visitor’s page.',
    )
    await search(limited, 'needle')
    await limited.getByText(/show names, pages and sessions of visitors, leads and contact details\.$/).waitFor()

    const full = await browser.open(core, 'conversations/cnv_maria')
    await full.locator('summary', { hasText: 'Identity' }).waitFor()
    await search(full, 'needle')
    await full.getByText('No results').waitFor()
    expect(await full.getByText(hint).count()).toBe(0)
  })
})

describe('the search', () => {
  it('finds an old message that is not loaded, with the keyboard only, and opens the conversation at this message', async () => {
    const id = 'cnv_long'
    core.conversations.add({ conversationId: id, visitor: { identityState: 'verified', displayName: 'Noor' } })
    core.conversations.past(id, 'visitor', 'Do you repair zippers?', 9_000_000, 'read')
    for (let index = 0; index < 160; index += 1)
      core.conversations.past(id, 'agent', `Answer ${index}`, 8_000_000 - index)
    const page = await browser.open(core, 'conversations')
    await page.getByText('Maria Huber').first().waitFor()
    await page.keyboard.press('/')
    await until('the field', async () => (await page.locator('input[type=search]:focus').count()) === 1)
    await page.keyboard.type('zipper')
    await until('one result', async () => (await rows(page).count()) === 1)
    expect(await rows(page).locator('mark').textContent()).toBe('zipper')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await page.locator('.message.found', { hasText: 'Do you repair zippers?' }).waitFor()
    await until('the message in view', () =>
      page.locator('.message.found').evaluate((element) => {
        const { top, bottom } = element.getBoundingClientRect()
        const frame = element.closest('.log')!.getBoundingClientRect()
        return top >= frame.top && bottom <= frame.bottom
      }),
    )
    await until('the focus', async () => (await focusedText(page)).includes('zippers'))
  })

  itLong('filters by status and agent, loads further pages, and returns to the list', async () => {
    for (let index = 0; index < 25; index += 1) {
      core.conversations.add({ conversationId: `cnv_n${index}` })
      core.conversations.past(`cnv_n${index}`, 'visitor', `needle ${index}`, 1000 + index)
    }
    core.conversations.assign('cnv_n3', 'Ada')
    core.conversations.close('cnv_n4')
    const page = await browser.open(core, 'conversations')
    await search(page, 'needle')
    await until('a page', async () => (await rows(page).count()) === 20)
    await page.getByRole('button', { name: 'Load more results' }).click()
    await until('both pages', async () => (await rows(page).count()) === 25)
    await page.getByLabel('Closed', { exact: true }).check({ force: true })
    await until('the closed one', async () => (await rows(page).count()) === 1)
    expect(await rows(page).textContent()).toContain('needle 4')
    await page.getByLabel('All', { exact: true }).check({ force: true })
    await page.getByLabel('Assigned to').selectOption('Me')
    await until('my one', async () => {
      const texts = await rows(page).allTextContents()
      return texts.length === 1 && texts[0]!.includes('needle 3')
    })
    await search(page, 'nothing like this')
    await page.getByText('No results').waitFor()
    await page.getByRole('searchbox').press('Escape')
    await page.getByText('Maria Huber').first().waitFor()
    expect(await page.getByRole('list', { name: 'Search results' }).count()).toBe(0)
  })

  const looks = [
    ['dark', { width: 390, height: 844 }],
    ['light', { width: 1440, height: 900 }],
  ] as const
  itLong.each(isLong ? looks : looks.slice(0, 1))(
    'has no accessibility violations (%s)',
    async (colorScheme, viewport) => {
      const page = await browser.open(core, 'conversations', { colorScheme, viewport })
      await search(page, 'e')
      await rows(page).first().waitFor()
      expect(await accessibilityFindings(page)).toEqual([])
      expect(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)).toBe(false)
    },
  )
})
