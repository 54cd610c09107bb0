import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { runAdmin } from '../../admin/run-admin.ts'
import { buildConsoleIfStale } from '../../console/build.ts'
import { sharedChromium } from '../support/chromium.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { until } from '../support/until.ts'

const stack = useLocalStack({ env: { RATE_LIMIT_FACTOR: '100' } })
let url: string
beforeAll(async () => {
  await buildConsoleIfStale()
  url = stack.gateways[0]!.url
})

async function signInLink(operator: string): Promise<string> {
  const output: string[] = []
  const io = { env: { DATA_DIR: stack.dataDir, CORE_URL: stack.cores[0]!.url }, printError: console.error }
  const args = ['console-link', '--gateway', url, '--operator', operator, '--json']
  expect(await runAdmin({ ...io, args, print: (text) => void output.push(text) })).toBe(0)
  return JSON.parse(output.join('')).link
}

/** Signs in an operator with a sign-in link and opens two tabs. `shown` collects the notifications of both tabs. */
async function openTabs(name: string) {
  const browser = await sharedChromium()
  const context = await browser.newContext({ reducedMotion: 'reduce', viewport: { width: 1440, height: 900 } })
  context.setDefaultTimeout(90_000)
  const shown: string[] = []
  await context.exposeBinding('recordNotification', (_, text: string) => void shown.push(text))
  await context.addInitScript({
    content: `document.hasFocus = () => false
      globalThis.Notification = class {
        static permission = 'granted'
        static requestPermission = async () => 'granted'
        constructor(title, { body = '' }) {
          if (body) recordNotification(body)
        }
        close() {}
      }`,
  })
  const one = await context.newPage()
  await one.goto(await signInLink(name))
  await one.getByLabel('Your name').fill(name)
  await one.getByRole('button', { name: 'Sign in' }).click()
  await one.getByRole('navigation', { name: 'Console' }).waitFor()
  const two = await context.newPage()
  // Answered conversations stay in the list.
  for (const tab of [one, two]) await tab.goto(`${url}/console/conversations?queue=open`)
  await one.getByText('Live', { exact: true }).waitFor()
  await two.getByText('Live', { exact: true }).waitFor()
  return { one, two, shown, close: () => context.close() }
}

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
const open = (page: Page, text: string) => page.locator('.row', { hasText: text }).click()
const title = (page: Page, text: RegExp) => page.locator('.thread-title').getByText(text)
const bubbles = (page: Page, text: string) => page.locator('.message .bubble', { hasText: text })

async function reply(page: Page, text: string) {
  const field = page.getByRole('textbox', { name: 'Reply' })
  await field.fill(text)
  await field.press('Enter')
}

it('an operator’s day: nothing is lost, nothing appears twice, and no notification is shown twice', async () => {
  const { one, two, shown, close } = await openTabs('Ada')
  await button(one, 'Notifications and sound').click()
  const clientInstanceId = randomUUID()
  const [mia, tom, spam] = await Promise.all([
    stack.newVisitor(),
    stack.newVisitor(),
    stack.newVisitor({ clientInstanceId }),
  ])
  let streams = await Promise.all([mia, tom, spam].map((visitor) => visitor.openStream()))
  await Promise.all([mia.send('Where is my parcel?'), tom.send('Do you repair zippers?'), spam.send('Buy followers')])
  for (const text of ['Where is my parcel?', 'Do you repair zippers?', 'Buy followers'])
    for (const tab of [one, two]) await tab.locator('.row', { hasText: text }).waitFor()

  // An answer that is written during an outage, in a tab that is reloaded after the outage.
  await open(one, 'Where is my parcel?')
  await reply(one, 'I am looking.')
  await until('the answer', () => streams[0]!.events.some(({ data }) => data.message?.body === 'I am looking.'))
  await open(two, 'Do you repair zippers?')
  await two.getByRole('textbox', { name: 'Reply' }).waitFor()
  await stack.gateways[0]!.stop()
  await reply(one, 'It left our store today.')
  await reply(two, 'We do, in a week.')
  await one.getByText(/Not sent yet/).waitFor()
  await two.getByText(/Not sent yet/).waitFor()
  await stack.gateways[0]!.start()
  streams = await Promise.all([mia, tom, spam].map((visitor) => visitor.openStream()))
  await one.reload()
  for (const [tab, text] of [
    [one, 'It left our store today.'],
    [two, 'We do, in a week.'],
  ] as const) {
    await tab.locator('.message.agent:not(.outgoing) .bubble', { hasText: text }).waitFor()
    await until('one message', async () => (await bubbles(tab, text).count()) === 1)
  }
  await tom.send('Great, I will send it.')
  await two.locator('.message.visitor .bubble', { hasText: 'I will send it.' }).waitFor()

  // A note, and a hand-over to a colleague. The answer has assigned the conversation.
  await title(two, /Assigned to you/).waitFor()
  await two.getByRole('checkbox', { name: 'Internal note' }).check({ force: true })
  await two.getByRole('textbox', { name: 'Note' }).fill('Zipper is the metal one')
  await two.keyboard.press('Enter')
  await two.locator('.message.note', { hasText: 'metal one' }).waitFor()
  await button(two, 'Unassign').click()
  const bea = await openTabs('Bea')
  await open(bea.one, 'I will send it.')
  await bea.one.locator('.message.note', { hasText: 'metal one' }).waitFor()
  await button(bea.one, 'Assign to me').click()
  await title(two, /Assigned to Bea/).waitFor()

  // A saved reply, added on its page and chosen with the keyboard.
  await bea.two.goto(`${url}/console/replies`)
  await bea.two.getByRole('textbox', { name: 'Shortcut' }).fill('address')
  await bea.two.getByRole('textbox', { name: 'Text' }).fill('Send it to Example Street 1.')
  await button(bea.two, 'Save reply').click()
  await bea.two.getByText('/address').waitFor()
  await bea.one.getByRole('textbox', { name: 'Reply' }).focus()
  await bea.one.keyboard.type('/ad')
  await button(bea.one, /^\/address/).waitFor()
  await bea.one.keyboard.press('ArrowDown')
  await bea.one.keyboard.press('Enter')
  await until(
    'the saved reply',
    async () => (await bea.one.getByRole('textbox', { name: 'Reply' }).inputValue()) === 'Send it to Example Street 1.',
  )
  await bea.one.keyboard.press('Enter')
  await until('the answer', () => streams[1]!.events.some(({ data }) => data.message?.body?.includes('Street 1.')))
  await bubbles(two, 'Street 1.').waitFor()
  await bea.two.goto(`${url}/console/`)

  // A search opens the conversation at its message.
  await bea.two.getByRole('searchbox').fill('parcel')
  const result = bea.two.getByRole('list', { name: 'Search results' }).getByRole('link')
  await until('the result', async () => (await result.count()) === 1)
  await result.click()
  await bea.two.locator('.message.found', { hasText: 'Where is my parcel?' }).waitFor()

  // A ban.
  await open(one, 'Buy followers')
  await button(one, 'Ban visitor').click()
  await one.getByRole('dialog').getByRole('button', { name: 'Ban visitor' }).click()
  await streams[2]!.ended
  expect((await spam.send('Hello?')).body).toMatchObject({ code: 'VisitorBanned' })

  // A close and a reopen.
  await open(one, 'It left our store today.')
  await button(one, 'Close').click()
  await until('the closing', () => streams[0]!.events.some(({ type }) => type === 'conversation.closed'))
  await button(one, 'Reopen').click()
  await until('the reopening', () => streams[0]!.events.some(({ type }) => type === 'conversation.reopened'))

  expect((await mia.history()).map(({ body }) => body)).toEqual([
    'Where is my parcel?',
    'I am looking.',
    'It left our store today.',
  ])
  expect((await tom.history()).map(({ body }) => body)).toEqual([
    'Do you repair zippers?',
    'We do, in a week.',
    'Great, I will send it.',
    'Send it to Example Street 1.',
  ])
  expect(JSON.stringify(streams.map(({ events }) => events))).not.toContain('metal one')
  await until('the notification', () => shown.includes('Great, I will send it.'))
  expect(shown.toSorted()).toEqual([...new Set(shown)].toSorted())
  for (const stream of streams) stream.close()
  await Promise.all([close(), bea.close()])
})
