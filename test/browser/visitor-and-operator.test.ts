import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { openShop } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()

const textsIn = async (page: Page) =>
  (await page.locator('[data-service-widget] .row:not([data-author=system]) .bubble').allTextContents()).map((text) =>
    text.replace(/^[^:]+: /, ''),
  )

// The other tests of the real stack in browsers are in the long run.
it('a visitor and an operator meet: chat, page request, closing, ban and the end of the session', async () => {
  await buildConsoleIfStale()
  const shop = await openShop(database)
  const { stack } = shop
  const visit = await shop.visit()
  const { page: visitor } = visit
  const operator = await visitor
    .context()
    .browser()!
    .newPage({ viewport: { width: 1440, height: 900 } })
  operator.setDefaultTimeout(90_000)
  const complaints: string[] = []
  operator.on('pageerror', (error) => complaints.push(String(error)))
  operator.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  await operator.goto(`${stack.gateways[0]!.url}/console/`)
  await operator.getByLabel('Or paste a token').fill(stack.demo.workspaceSession)
  await operator.getByLabel('Your name').fill('Ada')
  await operator.getByRole('button', { name: 'Sign in' }).click()
  await operator.getByText('Live', { exact: true }).waitFor()
  const button = (name: string) => operator.getByRole('button', { name, exact: true })

  const field = visitor.getByRole('textbox', { name: 'Your message' })
  const write = async (text: string) => {
    await field.fill(text)
    await visitor.keyboard.press('Enter')
  }
  await visitor.getByRole('button', { name: /^Open chat/ }).click()
  await write('Do you ship to Graz?')
  await operator.locator('.row', { hasText: 'Do you ship to Graz?' }).click()
  await operator.locator('.message.visitor', { hasText: 'Do you ship to Graz?' }).waitFor()
  await visitor.getByText(/· Read$/).waitFor()

  const answer = operator.getByRole('textbox', { name: 'Reply' })
  await answer.pressSequentially('We ')
  await visitor.getByText('Ada is typing').waitFor()
  await field.press('d')
  await operator.locator('.typing-line').waitFor()
  await answer.pressSequentially('do.')
  await operator.keyboard.press('Enter')
  await visitor.getByText('We do.').waitFor()
  await write('Thank you!')
  await operator.locator('.message.visitor', { hasText: 'Thank you!' }).waitFor()
  const conversation = ['Do you ship to Graz?', 'We do.', 'Thank you!']
  await visitor.reload()
  await until('the conversation after a reload', async () => (await textsIn(visitor)).length === 3)
  expect(await textsIn(visitor)).toEqual(conversation)

  const { sessionId, conversationId } = await visit.session()
  await shop.operator.commands.requestNavigation({ sessionId, url: `${shop.origin}/?lamp=dune`, label: 'Dune' })
  await visitor.getByRole('button', { name: 'Go to page' }).click()
  await visitor.waitForURL(`${shop.origin}/?lamp=dune`)
  await visitor.getByText('You went to the suggested page.').waitFor()
  await operator.locator('.command').first().getByText('Completed').waitFor()
  expect((await shop.messagesOf(conversationId)).map(({ body }) => body)).toEqual(conversation)

  await button('Ban visitor').click()
  await operator.getByRole('dialog').getByLabel('Reason').fill('Spam')
  await operator.getByRole('dialog').getByRole('button', { name: 'Ban visitor' }).click()
  await visitor.getByText('You can no longer send messages here.').waitFor()
  expect(await field.count()).toBe(0)
  expect(visit.complaints).toEqual([])
  expect(complaints).toEqual([])
})
