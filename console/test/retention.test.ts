import { beforeAll, describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { workspaceSession } from './fake-core.ts'
import { consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeAll)
const { core } = browser

describe('the retention of a workspace', () => {
  itLong('can be changed for each kind of data, and a save sends only the edited periods', async () => {
    const page = await browser.open(core, 'workspace')
    const conversations = page.getByLabel('Conversations', { exact: true })
    expect(await conversations.locator('option:checked').textContent()).toBe('Default (no limit)')
    await conversations.selectOption('For a number of days')
    const days = page.getByLabel('Days (conversations)')
    await days.fill('0')
    await page.getByRole('button', { name: 'Save retention' }).click()
    await page.getByText('Enter 1 to 3,650 days.').waitFor()
    expect(core.calls('UpdateWorkspace')).toEqual([])
    await days.fill('90')
    await page.getByLabel('Sessions without a message').selectOption('No limit')
    await page.getByRole('button', { name: 'Save retention' }).click()
    await page.getByText('Retention saved.').waitFor({ state: 'attached' })
    expect(core.calls('UpdateWorkspace')).toMatchObject([
      {
        retention: {
          conversations: { period: { case: 'days', value: 90 } },
          emptySessions: { period: { case: 'forever', value: true } },
        },
      },
    ])
    expect(core.calls('UpdateWorkspace')).not.toMatchObject([{ retention: { leads: {} } }])
    await page.reload()
    expect(await page.getByLabel('Days (conversations)').inputValue()).toBe('90')
  })
})

it('an owner changes the name of the workspace; a viewer sees the name, the last backup and the last drill', async () => {
  const page = await browser.open(core, 'workspace', { token: workspaceSession({ scope: 'workspaces:write' }) })
  const name = page.getByRole('textbox', { name: 'Name' })
  expect(await name.inputValue()).toBe('Alpine Outfitters')
  await name.fill('')
  await page.keyboard.press('Enter')
  await page.locator('.field-error', { hasText: 'Name is too short.' }).waitFor()
  await name.fill(' Alpine Shop ')
  await page.keyboard.press('Enter')
  await page.locator('.workspace-name', { hasText: 'Alpine Shop' }).waitFor()
  await page.getByRole('heading', { level: 1, name: 'Alpine Shop' }).waitFor()
  expect(core.calls('UpdateWorkspace').at(-1)).toMatchObject({ name: 'Alpine Shop' })
  const viewer = await browser.open(core, 'workspace')
  await viewer.getByRole('heading', { level: 1, name: 'Alpine Shop' }).waitFor()
  expect(await viewer.getByRole('textbox', { name: 'Name' }).count()).toBe(0)
  const facts = viewer.getByRole('region', { name: 'Backups' }).locator('dl')
  await facts.waitFor()
  expect(await facts.innerText()).toMatch(
    /^Last backup of the service\s+1 Mar 2026, 03:00:00\s+Last restore drill\s+Never$/,
  )
})

describe('a deletion in the console', () => {
  it.each(
    someOf(
      [
        ['subscriptions/sub_old', 'destination', 'DeleteSubscription', 'Destinations'],
        ['installations/pk_shop', 'website', 'DeleteInstallation', 'Websites'],
        ['workspace', 'workspace', 'DeleteWorkspace', undefined],
      ],
      1,
    ),
  )('of %s needs the typed name of the %s', async (path, kind, method, next) => {
    const page = await browser.open(core, path)
    const card = page.getByRole('region', { name: `Delete this ${kind}` })
    await card.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog')
    const confirm = dialog.getByRole('button', { name: `Delete ${kind}` })
    const field = dialog.getByLabel(/to confirm$/)
    const label = await dialog.getByText(/to confirm$/).textContent()
    const [, name = ''] = /“(.+)”/.exec(label ?? '') ?? []
    await field.fill(`${name}x`)
    expect(await confirm.isDisabled()).toBe(true)
    expect(core.calls(method)).toEqual([])
    await field.fill(name)
    await confirm.click()
    if (next) await page.getByRole('heading', { level: 1, name: next, exact: true }).waitFor()
    else await page.getByRole('button', { name: 'Sign in' }).waitFor()
    expect(core.calls(method)).toHaveLength(1)
    if (kind === 'workspace') expect(core.calls(method)).toMatchObject([{ workspaceId: 'ws_shop' }])
  })

  itLong('of a connection removes the card of the connection', async () => {
    core.workspace.addConnection({ connectionId: 'con_app', name: 'App' })
    const page = await browser.open(core, 'installations')
    await page.getByRole('button', { name: 'Delete Website' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/to confirm$/).fill('Website')
    await dialog.getByRole('button', { name: 'Delete connection' }).click()
    await page.getByRole('button', { name: 'Delete Website' }).waitFor({ state: 'detached' })
    expect(core.calls('DeleteConnection')).toHaveLength(1)
  })
})
