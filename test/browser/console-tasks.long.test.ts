import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { act, useLiveConsole } from './live-console.ts'

const live = useLiveConsole()
const { open, button, dialog, newVisitor } = live

/** Counts what the operator does: clicks, keys and texts. */
function steps() {
  let count = 0
  return {
    step: async (action: Promise<unknown>) => {
      count += 1
      await action
    },
    count: () => count,
  }
}

describe('an everyday task takes few steps:', () => {
  it('the oldest unanswered conversation, 2 keys', async () => {
    const { page } = live
    const visitors = [await newVisitor(), await newVisitor()]
    for (const [index, visitor] of visitors.entries()) await visitor.send(`Anybody there? ${index}`)
    await page.locator('.row', { hasText: 'Anybody there? 1' }).waitFor()
    const { step, count } = steps()
    await step(page.keyboard.press('n'))
    await page.locator('.message', { hasText: 'Anybody there? 0' }).waitFor()
    await page.locator('.thread-title h2:focus').waitFor()
    await step(page.keyboard.press('r'))
    await page.keyboard.type('Yes')
    await page.keyboard.press('Enter')
    await until('the answer', async () => (await visitors[0]!.history()).at(-1)?.body === 'Yes')
    await until('one left', async () => (await page.locator('.areas .count').textContent()) === '1 unanswered')
    expect(count()).toBe(2)
  })

  it('a conversation by a mail address, 3 steps', async () => {
    const { page, demo } = live
    await open(`installations/${demo.siteKey}/forms`)
    await page.getByRole('switch', { name: 'Offline form' }).click()
    const form = page.getByRole('form', { name: 'Offline form' })
    await form.getByRole('button', { name: /Use the usual fields/ }).click()
    await button('Save changes').click()
    await page.getByText('Offline form saved.').waitFor({ state: 'attached' })
    const visitor = await newVisitor()
    await visitor.send('I lost my parcel')
    const email = `maria-${randomUUID().slice(0, 8)}@example.org`
    const sent = await act(visitor, '/forms/offline', { fields: { name: 'Maria', email, message: 'Parcel' } })
    expect(sent.status).toBe(202)

    await open('conversations')
    await page.getByText('Live', { exact: true }).waitFor()
    const { step, count } = steps()
    await step(page.keyboard.press('/'))
    await until('the field', () => page.evaluate("document.activeElement?.getAttribute('type') === 'search'"))
    await step(page.keyboard.type(email))
    const row = page.getByRole('list', { name: 'Search results' }).locator('.row').first()
    await until('the lead in the search', async () => {
      if (await row.isVisible()) return true
      await page.getByRole('searchbox').fill('')
      await page.getByRole('searchbox').fill(email)
      await row.waitFor({ timeout: 2_000 }).catch(() => {})
      return row.isVisible()
    })
    await step(row.click())
    await page.locator('.message', { hasText: 'I lost my parcel' }).waitFor()
    expect(count()).toBe(3)
  })

  it('a new origin, an identity secret, and hours from Monday to Friday, 5 steps each', async () => {
    const { page } = live
    const websites = page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: 'Websites' })
    const site = page.locator('main .table-row').first()
    const tab = (name: string) => page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name })

    const origin = steps()
    await origin.step(websites.click())
    await origin.step(site.click())
    const addresses = page.getByRole('textbox', { name: 'Addresses' })
    await origin.step(addresses.fill('https://tasks.example'))
    await origin.step(addresses.press('Enter'))
    await button('Remove https://tasks.example').waitFor()
    expect(origin.count()).toBeLessThanOrEqual(5)

    const secret = steps()
    await secret.step(websites.click())
    await secret.step(site.click())
    await secret.step(tab('Identity').click())
    await secret.step(button('Rotate').click())
    await secret.step(button('Create new secret').click())
    await dialog()
      .getByLabel(/^Secret/)
      .waitFor()
    expect(secret.count()).toBeLessThanOrEqual(5)
    await live.keepSecret(/^Secret/)

    const hours = steps()
    await hours.step(tab('Hours').click())
    await hours.step(button('Add hours on Monday').click())
    await hours.step(button('Copy to weekdays').click())
    await hours.step(button('Save changes').click())
    await page.getByText('Opening hours saved.').waitFor({ state: 'attached' })
    await page.reload()
    expect(await page.getByLabel('Friday, to').inputValue()).toBe('17:00')
    expect(await page.getByLabel('Saturday, to').count()).toBe(0)
    expect(hours.count()).toBeLessThanOrEqual(5)
  })
})

describe('a task of the first days takes few steps:', () => {
  /** Signs in the owner of an empty workspace, in a browser of their own. */
  async function newWorkspace(name: string) {
    const { workspace } = await live.stack().operator().workspaces.createWorkspace({ name })
    const page = await live.newPage()
    await page.goto(await live.ownerLink(workspace!.workspaceId))
    await page.getByLabel('Your name').fill('Olga')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Three steps to your first conversation').waitFor()
    const area = (area: string) => page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: area })
    const named = (button: string) => page.getByRole('button', { name: button, exact: true })
    return { page, area, named }
  }

  it('the script element for the first page, 6 clicks and 1 text; another website, 4; a colleague, 4', async () => {
    const { page, area, named } = await newWorkspace('Lamps')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const copied = () => page.evaluate<string>('navigator.clipboard.readText()')
    const first = steps()
    await first.step(page.getByRole('link', { name: 'Add your website' }).click())
    await first.step(named('New website').first().click())
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('lamps.example')
    await first.step(named('Create website').click())
    await first.step(page.locator('main').getByText('Copy', { exact: true }).click())
    expect(await copied()).toMatch(/^<script .*data-site-key="pk_/)
    expect(first.count()).toBeLessThanOrEqual(6)

    const another = steps()
    await another.step(area('Websites').click())
    await another.step(named('New website').click())
    await page.locator('dialog input:focus').waitFor()
    await another.step(page.keyboard.type('shades.example'))
    await another.step(page.keyboard.press('Enter'))
    await page.getByText('https://shades.example').waitFor()
    expect(another.count()).toBe(4)

    const invitation = steps()
    await invitation.step(area('Team').click())
    const card = page.getByRole('region', { name: 'Invite a colleague' })
    await invitation.step(card.getByLabel('Role').selectOption({ label: 'Viewer' }))
    await invitation.step(named('Create invitation').click())
    await invitation.step(card.getByText('Copy', { exact: true }).click())
    expect(await copied()).toMatch(/#sign-in=[\w-]{43}$/)
    expect(invitation.count()).toBe(4)
    await page.context().close()
  })

  it('a lead by a mail address, 3, also one that a service has captured; an erasure of who only sent a form, 5', async () => {
    const { page, demo } = live
    const area = (name: string) => page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name })
    const { workspaces, leads } = live.stack().operator()
    const fields = [{ name: 'email', label: 'E-mail', type: 'email', required: true }]
    await workspaces.updateInstallation({
      siteKey: demo.siteKey,
      capabilities: { offlineForm: true },
      forms: { offline: { fields } },
    })
    const word = randomUUID().slice(0, 8)
    const [byForm, byService] = [`form-${word}@example.org`, `service-${word}@example.org`]
    const visitor = await newVisitor()
    expect((await act(visitor, '/forms/offline', { fields: { email: byForm } })).status).toBe(202)
    // Who only sent a form is in the inbox.
    await page.locator('.row', { hasText: byForm }).waitFor()
    const { workspaceId } = demo
    await leads.captureLead({ workspaceId, source: 'newsletter', fields: { email: byService } })
    for (const mail of [byForm, byService]) {
      const { step, count } = steps()
      await step(area('Leads').click())
      const field = page.getByLabel('E-mail address or telephone number')
      await step(field.fill(mail))
      await step(field.press('Enter'))
      await page.locator('main .table-row', { hasText: mail }).waitFor()
      expect(count()).toBe(3)
    }

    const { step, count } = steps()
    await step(area('Personal data').click())
    const person = page.getByLabel('E-mail address, name or visitor id')
    await step(person.fill(byForm))
    const found = page.getByRole('list', { name: 'People found' }).getByRole('button')
    await person.press('Enter')
    await until('the person', async () => {
      await found.or(page.getByText('Nobody found')).first().waitFor()
      if ((await found.count()) === 1) return true
      await button('Search').click()
      return false
    })
    await step(found.click())
    await step(button('Erase').click())
    await step(button('Erase for good').click())
    await page.getByText(/All data is removed/).waitFor()
    expect(count()).toBe(5)
  })

  it('a conversation for a colleague, 2, who sees it among the own ones at once', async () => {
    const { page } = live
    const colleague = await live.newPage()
    await colleague.goto(await live.ownerLink(live.demo.workspaceId))
    await colleague.getByLabel('Your name').fill('Carl')
    await colleague.getByRole('button', { name: 'Sign in' }).click()
    await colleague.getByText('Live', { exact: true }).waitFor()
    const { stream } = await live.openConversation('Who can repair a lamp?')
    const { step, count } = steps()
    await step(page.getByLabel('Assigned to').focus())
    await step(page.getByLabel('Assigned to').selectOption({ label: 'Carl' }))
    await colleague.locator('.queues').getByText('Mine1').waitFor()
    await page.getByText('Assigned to Carl').first().waitFor()
    expect(count()).toBe(2)
    stream.close()
    await colleague.context().close()
  })
})

it('the personal data of a visitor are found, exported and erased in the console', async () => {
  const { page } = live
  const visitor = await newVisitor()
  const word = `zebra${randomUUID().slice(0, 8)}`
  await visitor.send(`My order is ${word}`)
  await open('people')
  const field = page.getByLabel('E-mail address, name or visitor id')
  const found = page.getByRole('list', { name: 'People found' }).getByRole('button')
  await until('the visitor', async () => {
    await field.fill(word)
    await button('Search').click()
    await found.or(page.getByText('Nobody found')).first().waitFor()
    return (await found.count()) === 1
  })
  await found.click()
  await page.locator('.facts', { hasText: 'Conversations' }).waitFor()
  const downloading = page.waitForEvent('download')
  await button('Export').click()
  const lines = (await readFile(await (await downloading).path(), 'utf8')).trim().split('\n')
  const kinds = lines.map((line) => JSON.parse(line).kind)
  expect(new Set(kinds)).toEqual(new Set(['session', 'conversation', 'event']))
  expect(lines.join()).toContain(word)
  await button('Erase').click()
  await button('Erase for good').click()
  await page.getByText(/All data is removed/).waitFor()
  expect((await visitor.send('Hello?')).status).not.toBe(202)
})
