import { Code } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { addDemoData } from './demo-data.ts'
import type { FakeCore } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()
let core: FakeCore
beforeEach(async () => {
  core = await browser.newCore()
})

describe('the suppression list in the console', () => {
  itLong('lets an operator look up, add and remove an entry with the keyboard', async () => {
    const page = await browser.open(core, 'conversations')
    await page.getByText('Three steps to your first conversation').waitFor()
    const press = (...keys: string[]) => Promise.all(keys.map((key) => page.keyboard.press(key)))
    await press('g', 'u')
    await page.getByText('Nobody is on the list').waitFor()
    expect(await page.title()).toBe('Do not contact · Console')

    await page.getByRole('textbox', { name: 'E-mail' }).focus()
    await page.keyboard.type(' ada@example.com ')
    await press('Enter')
    await page.getByText(/is not on the list/).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Add to list' }).press('Enter')
    const dialog = page.getByRole('dialog')
    await until('the focus', () => dialog.getByLabel('E-mail').evaluate((field) => field.matches(':focus')))
    await press('Tab')
    await page.keyboard.type('asked us')
    await press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await page.getByText(/is on the list since .*asked us/).waitFor()
    expect(core.calls('AddSuppressions')).toMatchObject([
      { entries: [{ of: { case: 'email', value: 'ada@example.com' } }], reason: 'asked us' },
    ])

    await page
      .getByRole('button', { name: /^Remove entry/ })
      .first()
      .press('Enter')
    await dialog.getByText(/stay ended/).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Remove entry' }).press('Enter')
    await page.getByText('Nobody is on the list').waitFor()
    await page.getByText(/is not on the list/).waitFor()
  })

  itLong('is shown in pages, with the id of each entry instead of its value', async () => {
    await addDemoData(core)
    const page = await browser.open(core, 'suppressions')
    const rows = page.locator('.table-row')
    await until('a page', async () => (await rows.count()) === 100)
    await page.getByRole('button', { name: 'Load earlier entries' }).click()
    await until('all', async () => (await rows.count()) === 122)
    await page.getByRole('button', { name: /Remove entry spr_imported1$/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove entry' }).click()
    await until('its removal', () => core.workspace.suppressions.count() === 121)
  })

  itLong('says why a look-up or an addition is refused', async () => {
    core.fault('ListSuppressions', { code: Code.PermissionDenied })
    const page = await browser.open(core, 'suppressions')
    await page.getByText(/does not have permission/).waitFor()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('E-mail').fill('ada@x.invalid-domain')
    await dialog.getByRole('button', { name: 'Add entry' }).click()
    await dialog.getByText('E-mail has an invalid format.').waitFor()
  })
})

describe('the import of suppressions in the console', () => {
  it('shows its button before a list is entered', async () => {
    const page = await browser.open(core, 'suppressions/import', { locale: 'de-AT' })
    await page.getByText('Geben Sie oben Personen ein, oder wählen Sie eine Datei.').waitFor()
    const button = page.getByRole('button', { name: '0 Einträge importieren' })
    expect(await button.isDisabled()).toBe(true)
    await page.getByLabel('Einträge').fill('ada@example.com')
    await page.getByRole('button', { name: '1 Eintrag importieren' }).click()
    await page.getByText('1 Eintrag hinzugefügt.').waitFor()
  })

  const many = Array.from({ length: 2500 }, (_, index) => `visitor${index}@example.com`)

  const listFile = (lines: string[]) => ({
    name: 'people.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from(lines.join('\n')),
  })

  it('says which kind a column needs when an entry does not fit it', async () => {
    const page = await browser.open(core, 'suppressions/import')
    await page.setInputFiles('input[type=file]', listFile(['email', 'ada@example.com', '+43 1 234 5678']))
    await page.getByText('1 entry does not fit the column').waitFor()
    await page.locator('.list-lines', { hasText: '+43 1 234 5678' }).getByText('not an e-mail address').waitFor()
  })

  itLong('previews a file, imports it in parts, and leaves out entries that the service rejects', async () => {
    const page = await browser.open(core, 'suppressions/import')
    const strange = ['Ada Lovelace', 'x@y.invalid-domain', 'VISITOR1@example.com', '+43 1 234']
    await page.setInputFiles('input[type=file]', listFile([...strange, ...many]))
    await page.getByText('2,501 e-mail addresses, 1 phone number found. 1 repetition left out.').waitFor()
    await page.getByText(/1 line is neither/).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByLabel('Reason').fill('newsletter')
    await page.getByRole('button', { name: 'Import 2,502 entries' }).click()
    await page.getByText('2,501 entries added. 0 entries were on the list already.').waitFor()
    await page.getByText(/2 lines are neither/).waitFor()
    expect(core.calls('AddSuppressions').map(({ entries }: { entries: unknown[] }) => entries.length)).toEqual([
      1000, 999, 1000, 502,
    ])
    expect(core.workspace.suppressions.count()).toBe(2501)
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('link', { name: 'Show the list' }).click()
    await page.getByText('newsletter').first().waitFor()
  })

  itLong('continues after a lost response, and adds nothing twice', async () => {
    const page = await browser.open(core, 'suppressions/import')
    core.fault('AddSuppressions', { code: Code.Unavailable, afterwards: true })
    await page.setInputFiles('input[type=file]', listFile(many))
    await page.getByRole('button', { name: 'Import 2,500 entries' }).click()
    await page.getByText(/Stopped after 0 entries/).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('1,500 entries added. 1,000 entries were on the list already.').waitFor()
    const keys = core.calls('AddSuppressions').map(({ idempotencyKey }) => idempotencyKey)
    expect(keys[1]).toBe(keys[0])
    expect(core.workspace.suppressions.count()).toBe(2500)
  })

  itLong('reads pasted lists and the known columns of CSV files, and shows HTML in a file as text', async () => {
    const page = await browser.open(core, 'suppressions/import')
    await page.getByLabel('Entries').fill('Ada@example.com, Ada\nsubject:customer-17')
    await page.getByText('1 e-mail address, 1 visitor id found.').waitFor()
    await page.getByText(/Not read: column 2/).waitFor()
    const buffer = Buffer.from(
      '\uFEFFName;E-mail\r\n<img src=x onerror=alert(1)>;ada@example.com\r\n=HYPERLINK("x");<b>bob</b>\r\n',
    )
    await page.setInputFiles('input[type=file]', { name: 'list.csv', mimeType: 'text/csv', buffer })
    await page.getByText('1 e-mail address found.').waitFor()
    await page.getByText('Not read: Name.').waitFor()
    await page.getByText('<b>bob</b>', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Remove file' }).click()
    await page.getByText(/found/).waitFor({ state: 'detached' })
    await page.setInputFiles('input[type=file]', { name: 'list.csv', mimeType: 'text/csv', buffer })
    await page.getByRole('button', { name: 'Import 1 entry' }).click()
    await page.getByText('1 entry added. 0 entries were on the list already.').waitFor()
  })
})
