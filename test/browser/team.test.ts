import { expect, it } from 'vitest'
import { button, enter, invite, openTeam, useLiveTeam } from './live-team.ts'

const live = useLiveTeam()

it('a team begins with a link, invites a colleague in four steps, and signs in with passkeys', {
  timeout: 120_000,
}, async () => {
  const owner = await live.newPerson()
  await owner.goto(await live.ownerLink())
  await owner.getByLabel('Name of your workspace').fill('Olga’s Shop')
  await owner.getByLabel('Your name').fill('Olga')
  await button(owner, 'Sign in').click()
  await owner.getByText('Olga’s Shop').first().waitFor()
  await openTeam(owner)
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
})
