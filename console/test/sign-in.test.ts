import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { workspaceSession } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()

describe('signing in to the console', () => {
  it('a link signs in all tabs, its secret does not stay in the address, and a sign-out warns of drafts in another tab', async () => {
    const core = await browser.newDemoCore()
    const page = await browser.open(core, '', { token: null })
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Use a passkey')
    const other = await page.context().newPage()
    await other.goto(`${core.url}/console/conversations/cnv_maria`)
    await other.getByRole('heading', { name: 'Sign in to the console' }).waitFor()

    // Opening a link in an open tab changes only the fragment.
    await page.goto(`${core.url}/console/#sign-in=good`)
    await page.getByLabel('Or paste a token').waitFor({ state: 'detached' })
    expect(page.url()).toBe(`${core.url}/console/`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Enter the name that visitors will see.').waitFor()
    await page.getByLabel('Your name').fill('Bea')
    await page.keyboard.press('Enter')
    await page.getByText('Maria Huber').first().waitFor()
    const reply = other.getByRole('textbox', { name: 'Reply' })
    await reply.fill('Half a sentence')
    expect(await page.evaluate(() => JSON.stringify([history.state, location.href, document.cookie]))).not.toContain(
      'good',
    )

    await page.getByRole('button', { name: 'Sign out' }).click()
    const dialog = page.getByRole('dialog', { name: 'Sign out' })
    await dialog.getByText('One conversation has an unsent draft.').waitFor()
    await dialog.getByRole('button', { name: 'Sign out' }).click()
    for (const tab of [page, other]) await tab.getByText('You are signed out in all tabs.').waitFor()
    expect(await other.evaluate(() => JSON.stringify(sessionStorage))).not.toContain('Half a sentence')

    await page.goto(`${core.url}/console/#sign-in=good`)
    await page.getByText(/This link was used or has expired/).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByLabel('Or paste a token').waitFor()
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Use a passkey')
    // The link is no longer in the form, so a token signs in.
    await page.getByLabel('Or paste a token').fill(workspaceSession())
    await page.keyboard.press('Enter')
    await page.getByText('Maria Huber').first().waitFor()

    // Somebody else uses the link while it is open. A signed-in operator learns about it, and can stay.
    const json = { workspaceName: 'Shop', firstOwner: false, invitation: false }
    await page.route('**/console/session/link', (route) => route.fulfill({ json }))
    await page.goto(`${core.url}/console/#sign-in=good`)
    await page.getByText('You are signed in as Bea.').waitFor()
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText(/This link was used or has expired/).waitFor()
    await page.getByRole('button', { name: 'Stay signed in as Bea' }).click()
    await page.getByText('Maria Huber').first().waitFor()
  })

  itLong('the console asks before a sign-in link replaces the session of a signed-in operator', async () => {
    const core = await browser.newCore()
    const page = await browser.open(core, 'leads')
    await page.getByRole('heading', { name: 'Leads', exact: true }).waitFor()
    await page.goto(`${core.url}/console/leads#sign-in=good`)
    await page.getByText('You are signed in as Ada.').waitFor()
    await page.getByRole('button', { name: 'Stay signed in as Ada' }).click()
    await page.getByRole('heading', { name: 'Leads', exact: true }).waitFor()
  })

  itLong(
    'a wrong token at the first sign-in shows that the token is not accepted, and no text about an earlier session',
    async () => {
      const core = await browser.newCore()
      const page = await browser.open(core, 'leads', { token: null })
      await page.getByLabel('Or paste a token').fill('not a token')
      await page.getByLabel('Your name').fill('Ada')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText(/This token is not accepted/).waitFor()
      expect(await page.getByText('Your session').count()).toBe(0)
    },
  )

  itLong('if an identity provider is configured, the page shows its button and explains a failed sign-in', async () => {
    const core = await browser.newCore()
    const page = await browser.open(core, 'leads', { token: null })
    await page.route('**/console/session/options', (route) => route.fulfill({ json: { provider: true } }))
    const address = `${core.url}/console/somewhere`
    await page.route('**/console/session/provider', (route) => route.fulfill({ json: { url: address } }))
    await page.goto(`${core.url}/console/?again#sign-in-failed=denied`)
    await page.getByText(/Your account has no access/).waitFor()
    expect(page.url()).not.toContain('#')
    const button = page.getByRole('button', { name: 'Sign in with single sign-on' })
    await button.waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await button.click()
    await page.waitForURL(address)
  })

  itLong('the sign-in form appears after the service answers again', async () => {
    const core = await browser.newCore()
    const page = await browser.open(core, 'leads', { token: null })
    await page.route('**/console/session/current', (route) => route.abort())
    await page.reload()
    await page.getByText(/The service cannot be reached/).waitFor()
    await page.unroute('**/console/session/current')
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor()
    await until('the form', () => page.getByLabel('Your name').isVisible())
  })
})
