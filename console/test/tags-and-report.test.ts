import { readFile } from 'node:fs/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

describe('the tags of a conversation', () => {
  itLong('are added and removed by keyboard, shown in the row, and filter the list', async () => {
    const page = await browser.open(core, 'conversations/cnv_x7f3')
    const details = page.locator('.details')
    const field = details.getByRole('combobox', { name: 'Tags' })
    await field.fill('Refund')
    await field.press('Enter')
    await details.getByRole('button', { name: 'Remove refund' }).waitFor()
    expect(await field.inputValue()).toBe('')
    await page.getByText('Tagged refund').waitFor()
    await page.locator('.row', { hasText: 'WINTER' }).locator('.row-labels', { hasText: 'refund' }).waitFor()

    // A text that is not finished is no tag.
    await field.fill('unfinished')
    await page.getByRole('textbox', { name: 'Reply' }).focus()
    expect(core.calls('AddTag')).toHaveLength(1)

    const filter = page.getByRole('combobox', { name: 'Tag', exact: true })
    await filter.focus()
    await until('the new tag', async () => (await filter.locator('option').allTextContents()).includes('refund'))
    await filter.selectOption('refund')
    await until('one row', async () => (await page.locator('.conversations .row').count()) === 1)
    await until('the filter in the call', async () =>
      core.calls('ListConversations').some(({ tag }: { tag?: string }) => tag === 'refund'),
    )
    await details.getByRole('button', { name: 'Remove refund' }).press('Enter')
    await page.getByText('No conversations with this tag').waitFor()
    await filter.selectOption('')
    await page.locator('.row', { hasText: 'WINTER' }).waitFor()
  })

  itLong('keep the typed text and say why if the service refuses it', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria/details')
    const field = page.locator('.details').getByRole('combobox', { name: 'Tags' })
    core.fault('AddTag', { code: 14 })
    await field.fill('later')
    await field.press('Enter')
    await page.locator('.details .notice.danger').waitFor()
    expect(await field.inputValue()).toBe('later')
    await field.fill('x'.repeat(41))
    await field.press('Enter')
    await page.getByText('A tag has at most 40 characters.').waitFor()
    expect(core.calls('AddTag')).toHaveLength(1)
  })
})

describe('the report', () => {
  itLong('shows days, hours and tags as a chart and a table, and saves a CSV file without formulas', async () => {
    const page = await browser.open(core, 'conversations')
    await page.getByText('Maria Huber').first().waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('e')
    await page.getByRole('heading', { name: 'Report' }).waitFor()
    const chart = (name: string) => page.getByRole('img', { name })
    await chart('Conversations by day.').waitFor()
    expect(await page.locator('.chart-bar').count()).toBe(7)
    expect(await page.locator('.figure-table tbody tr').count()).toBe(7)
    await page.getByRole('radio', { name: 'Hour' }).check({ force: true })
    await chart('Conversations by hour.').waitFor()
    expect(await page.locator('.figure-table tbody tr').count()).toBe(24)
    await page.getByRole('radio', { name: 'Tag' }).check({ force: true })
    await page.getByLabel('Show').selectOption({ label: 'Mean rating' })
    await chart('Mean rating by tag.').waitFor()
    await page.getByRole('row', { name: /refund 40/ }).waitFor()

    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const saved = await saving
    expect(saved.suggestedFilename()).toBe('report-2026-11-20.csv')
    const lines = (await readFile((await saved.path())!, 'utf8')).split('\r\n')
    expect(lines).toHaveLength(1 + 1 + 7 + 24 + 5 + 1)
    expect(lines.filter((line) => line.includes('=cmd'))[0]).toMatch(/^tag,'=cmd,22,/)

    await page.getByLabel('Period').selectOption('28')
    await page.getByRole('radio', { name: 'Day' }).check({ force: true })
    await until('28 rows', async () => (await page.locator('.figure-table tbody tr').count()) === 28)
  })

  const written = [
    ['en', '2 Dec 2026', '1,240'],
    ['de', '02.12.2026', '1.240'],
  ] as const
  it.each(someOf(written, 1))(
    'writes dates and numbers as readers of %s do, and aligns the numbers at their end',
    async (lang, date, count) => {
      core.report.add([1_240])
      const page = await browser.open(core, 'report', { locale: lang })
      await page.locator('input[type=date]').fill('2026-12-02')
      const row = page.getByRole('row', { name: date })
      const cell = row.getByRole('cell', { name: count, exact: true })
      await cell.waitFor()
      const { textAlign, fontVariantNumeric } = await cell.evaluate((element) => getComputedStyle(element))
      expect([textAlign, fontVariantNumeric]).toEqual(['end', 'tabular-nums'])
      expect(await page.locator('main').innerText()).not.toMatch(/\d{4}-\d\d-\d\d/)
    },
  )

  itLong('says that nobody wrote, and that the days have too many conversations', async () => {
    const core = await browser.newCore()
    const page = await browser.open(core, 'report')
    await page.getByText('No visitor began a conversation in these days.').waitFor()
    core.fault('GetReport', { code: 3, info: 'ValidationFailed', issues: [{ path: '/days', rule: 'maxItems' }] })
    await page.getByLabel('Period').selectOption('14')
    await page.getByText('Too many conversations. Choose fewer days or a later first day.').waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No visitor began a conversation in these days.').waitFor()
  })
})
