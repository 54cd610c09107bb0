import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { until } from '../support/until.ts'
import { button, enter, invite, openTeam, useLiveTeam } from './live-team.ts'

const live = useLiveTeam()

/** Headless Chromium has no push service. The worker, its policy and the calls are real. */
const pushService = `{
  const encode = (bytes) => btoa('\\x04'.repeat(bytes)).replaceAll('=', '')
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    if (!userVisibleOnly || !/^[\\w-]{87}$/.test(applicationServerKey)) throw new Error('options')
    const keys = { p256dh: encode(65).replaceAll('/', '_'), auth: encode(16).replaceAll('/', '_') }
    return { toJSON: () => ({ endpoint: 'https://93.184.216.34/push', keys }) }
  }
}`

itLong(
  'a team begins with a link, invites a colleague in four steps, and signs in with passkeys',
  { timeout: 120_000 },
  async () => {
    const owner = await live.newPerson()
    await owner.goto(await live.ownerLink())
    await owner.getByLabel('Name of your workspace').fill('Olga’s Shop')
    await owner.getByLabel('Your name').fill('Olga')
    await button(owner, 'Sign in').click()
    await owner.getByText('Olga’s Shop').first().waitFor()
    await openTeam(owner)
    expect(await owner.locator('.page > h2').allTextContents()).toEqual(['Everyone', 'You'])
    const link = await invite(owner, 'Operator')

    const colleague = await live.newPerson()
    await enter(colleague, link, 'Carl')
    await openTeam(colleague)
    await button(colleague, 'Add a passkey').click()
    await colleague.getByRole('region', { name: 'Your passkeys' }).getByText(/Added/).waitFor()
    expect(await button(colleague, 'Create invitation').isVisible()).toBe(false)
    await button(colleague, 'Sign out').click()
    await button(colleague, 'Use a passkey').click()
    await colleague.getByRole('navigation', { name: 'Console' }).waitFor()

    const thief = await live.newPerson()
    await thief.goto(link)
    await thief.getByText(/This link was used or has expired/).waitFor()

    // The removed colleague is signed out, and the passkey is refused.
    await owner.reload()
    await button(owner, 'Remove Carl').click()
    await owner.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await colleague.getByText(/Your session has ended/).waitFor()
    await button(colleague, 'Use a passkey').click()
    await colleague.getByText(/This passkey is not accepted/).waitFor()
    await owner.getByLabel('Role of Olga').selectOption({ label: 'Viewer' })
    await owner.getByText(/Make another account an owner first/).waitFor()
    expect(await owner.getByLabel('Role of Olga').locator('option:checked').textContent()).toBe('Owner')
  },
)

itLong('an operator chooses notifications and subscribes the browser to pushes', { timeout: 120_000 }, async () => {
  const owner = await live.newPerson()
  await owner.context().grantPermissions(['notifications'])
  await owner.addInitScript(pushService)
  const complaints: string[] = []
  owner.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())))
  const attention = owner.waitForRequest((request) => request.url().endsWith('/ReportAttention'))
  await enter(owner, await live.ownerLink(), 'Olga')
  await attention
  await openTeam(owner)
  const card = owner.getByRole('region', { name: 'Notifications', exact: true })
  await card.getByLabel('New conversation').check()
  await card.getByLabel('Minutes that a visitor waits').fill('241')
  await button(owner, 'Save notifications').click()
  await card.getByText('Enter 0 to 240 minutes.').waitFor()
  await card.getByLabel('Minutes that a visitor waits').fill('5')
  await card.getByLabel('Shown of a conversation').selectOption('name')
  await button(owner, 'Save notifications').click()
  await owner.getByText('Your notifications are saved.').waitFor({ state: 'attached' })
  await button(owner, 'Turn on pushes here').click()
  await button(owner, 'Turn off pushes here').waitFor()
  await owner.reload()
  await button(owner, 'Turn off pushes here').waitFor()
  expect(await card.getByLabel('New conversation').isChecked()).toBe(true)
  expect(await card.getByLabel('Minutes that a visitor waits').inputValue()).toBe('5')
  expect(await card.getByLabel('Shown of a conversation').inputValue()).toBe('name')
  await button(owner, 'Turn off pushes here').click()
  await button(owner, 'Turn on pushes here').waitFor()
  expect(complaints).toEqual([])
})

itLong('two operators in one conversation see each other, and who writes', { timeout: 120_000 }, async () => {
  const owner = await live.newPerson()
  await enter(owner, await live.ownerLink(), 'Olga')
  await openTeam(owner)
  const link = await invite(owner, 'Operator')
  const colleague = await live.newPerson()
  await enter(colleague, link, 'Carl')
  await live.visitorSays('Do you deliver?')
  for (const page of [owner, colleague]) {
    await page.goto(`${live.url()}/console/`)
    await page.locator('.row', { hasText: 'Do you deliver?' }).click()
  }
  const title = (page: Page) => page.locator('.thread-title')
  await title(colleague)
    .getByText(/Olga is here too/)
    .waitFor()
  await title(owner)
    .getByText(/Carl is here too/)
    .waitFor()
  expect(await title(owner).textContent()).not.toContain('Olga is here')
  await colleague.getByRole('textbox', { name: 'Reply' }).pressSequentially('We do')
  await owner.getByText('Carl is typing…').waitFor()
  await colleague.getByRole('link', { name: 'Leads' }).first().click()
  await title(owner)
    .getByText(/is here too/)
    .waitFor({ state: 'detached' })
})

itLong('a push is shown, and a click on it opens its conversation; blocked pushes are explained', async () => {
  const owner = await live.newPerson()
  await owner.addInitScript(pushService)
  await enter(owner, await live.ownerLink(), 'Olga')
  await openTeam(owner)
  await button(owner, 'Turn on pushes here').click()
  await owner.getByText(/^Notifications are blocked/).waitFor()
  expect(owner.context().serviceWorkers()).toEqual([])
  await owner.context().grantPermissions(['notifications'])
  await button(owner, 'Turn on pushes here').click()
  await button(owner, 'Turn off pushes here').waitFor()

  await live.visitorSays('Is the blue one here?')
  await owner.getByRole('link', { name: /^Inbox/ }).click()
  const path = (await owner.locator('.row', { hasText: 'Is the blue one here?' }).getAttribute('href'))!.split('?')[0]!
  await openTeam(owner)
  // Headless Chromium shows no notifications, and nobody can click them. The event of the push is real.
  const [worker] = owner.context().serviceWorkers()
  await worker!.evaluate(`
    globalThis.shown = []
    registration.showNotification = async (title, { body, tag, data }) => void shown.push({ title, body, tag, data })
    WindowClient.prototype.focus = async function () { return this }
  `)
  const devtools = await owner.context().newCDPSession(owner)
  const registration = new Promise<string>((resolve) => {
    devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: [found] }) => {
      if (found) resolve(found.registrationId)
    })
  })
  await devtools.send('ServiceWorker.enable')
  const push = { title: 'New conversation', body: 'A visitor waits', path, tag: 'cnv' }
  await devtools.send('ServiceWorker.deliverPushMessage', {
    origin: live.url(),
    registrationId: await registration,
    data: JSON.stringify(push),
  })
  const shown = () => worker!.evaluate('shown')
  await until('the notification', async () => ((await shown()) as object[]).length === 1)
  expect(await shown()).toEqual([{ title: push.title, body: push.body, tag: push.tag, data: path }])
  await worker!.evaluate(`
    const notification = { data: shown[0].data, close: () => shown.pop() }
    dispatchEvent(Object.assign(new Event('notificationclick'), { notification, waitUntil() {} }))
  `)
  await owner.locator('.message', { hasText: 'Is the blue one here?' }).waitFor()
  expect(new URL(owner.url()).pathname).toBe(path)
  expect(await shown()).toEqual([])
})
