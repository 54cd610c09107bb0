import { createHash, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { signAssertion } from '../support/assertion.ts'
import { sharedChromium } from '../support/chromium.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { freePort } from '../support/free-port.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { EventStream, Visitor } from '../support/visitor.ts'

const database = testDatabase()
const picturePath = join(import.meta.dirname, '../../docs/images/demo-shop.png')
let stack: LocalStack
let gatewayUrl: string
let demo: DemoFile
let receiver: Receiver
let browser: Browser
/** The signed-in operator's page and its console errors, including policy violations. */
let page: Page
let consoleErrors: string[]

beforeAll(async () => {
  await buildConsoleIfStale()
  receiver = await startReceiver()
  atFileEnd(receiver.close)
  stack = await startLocalStack({
    database,
    env: { RATE_LIMIT_FACTOR: '100', DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' },
  })
  demo = stack.demo
  gatewayUrl = stack.gateways[0]!.url
  await startDeliveryWorker(stack)
  browser = await sharedChromium()
})

beforeEach(async () => {
  const context = await browser.newContext({ reducedMotion: 'reduce', viewport: { width: 1440, height: 900 } })
  page = await context.newPage()
  page.setDefaultTimeout(20_000)
  consoleErrors = []
  page.on('pageerror', (error) => consoleErrors.push(String(error)))
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) consoleErrors.push(message.text())
  })
  await page.addInitScript({
    content: `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
        console.error('CSP: ' + violatedDirective + ' ' + blockedURI))
      // Stores the last blob for which the page creates an object URL. A test compares its bytes
      // with the uploaded bytes.
      const createObjectURL = URL.createObjectURL.bind(URL)
      URL.createObjectURL = (blob) => createObjectURL(window.picture = blob)`,
  })
  await signIn()
})
afterEach(async () => {
  expect(consoleErrors).toEqual([])
  await page.context().close()
})

async function signIn() {
  await page.goto(`${gatewayUrl}/console/`)
  await page.getByLabel('Or paste a token').fill(demo.workspaceSession)
  await page.getByLabel('Your name').fill('Ada')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
}

const open = (path: string) => page.goto(`${gatewayUrl}/console/${path}`)
const button = (name: string | RegExp) => page.getByRole('button', { name })
const dialog = () => page.getByRole('dialog')
const command = (text: string) => page.locator('.command').first().getByText(text)
const answerField = () => page.getByRole('textbox', { name: 'Reply' })

const newVisitor = (more: { origin?: string; clientInstanceId?: string } = {}) => stack.newVisitor(more)

function act(visitor: Visitor, path: string, body: unknown) {
  return visitor.call('POST', path, { body, headers: { 'Idempotency-Key': randomUUID() } })
}

const eventOf = (stream: EventStream, type: string) =>
  until(`the event ${type}`, () => stream.events.findLast((event) => event.type === type))

/** Starts a visitor with a message and a stream, and opens its conversation in the console. */
async function openConversation(text: string, options: { clientInstanceId?: string } = {}) {
  const visitor = await newVisitor(options)
  const stream = await visitor.openStream()
  expect((await visitor.send(text)).status).toBe(202)
  await page.locator('.row', { hasText: text }).click()
  await page.locator('.message.visitor', { hasText: text }).waitFor()
  return { visitor, stream }
}

async function keepSecret(label: RegExp): Promise<string> {
  const secret = await dialog().getByLabel(label).inputValue()
  await dialog()
    .getByLabel(/I have stored it/)
    .check()
  await dialog().getByRole('button', { name: 'Done' }).click()
  await dialog().waitFor({ state: 'detached' })
  return secret
}

describe('an operator and a visitor on the real stack', () => {
  it('exchange messages and typing live, and the visitor’s message becomes read', async () => {
    const { visitor, stream } = await openConversation('Do you ship to Graz?')
    await eventOf(stream, 'message.accepted')
    await until('the read state', () =>
      stream.events.some(({ type, data }) => type === 'message.state.changed' && data.state === 'read'),
    )
    await visitor.call('POST', '/typing', { body: { state: 'started' } })
    await page.locator('.typing-line').waitFor()
    await visitor.call('POST', '/typing', { body: { state: 'stopped' } })
    await page.locator('.typing-line').waitFor({ state: 'detached' })

    await answerField().pressSequentially('We do. ')
    expect((await eventOf(stream, 'typing.started')).data.author).toMatchObject({ kind: 'agent', displayName: 'Ada' })
    await page.keyboard.type('Two days.')
    await page.keyboard.press('Enter')
    const { message } = (await eventOf(stream, 'message.received')).data
    expect(message).toMatchObject({ body: 'We do. Two days.', author: { kind: 'agent', displayName: 'Ada' } })
    await page.locator('.message.agent:not(.outgoing)', { hasText: 'Two days.' }).waitFor()
    expect((await visitor.history()).map(({ body }) => body)).toEqual(['Do you ship to Graz?', 'We do. Two days.'])

    await visitor.send('شكرا جزيلا!')
    await page.locator('.message.visitor:last-child .bubble', { hasText: 'شكرا' }).waitFor()
    expect(
      await page.evaluate("getComputedStyle(document.querySelector('.message:last-child .bubble')).direction"),
    ).toBe('rtl')
    stream.close()
  })

  it('see that a conversation is assigned and closed, and that the visitor’s next message reopens it', async () => {
    const { visitor, stream } = await openConversation('Is the showroom open?')
    await button('Assign to me').click()
    expect((await eventOf(stream, 'agent.assigned')).data).toMatchObject({ agent: { displayName: 'Ada' } })
    await page.getByText(/Assigned to you/).waitFor()
    await button('Close').click()
    await page
      .locator('.thread-title')
      .getByText(/· Closed/)
      .waitFor()
    await eventOf(stream, 'conversation.closed')
    const row = page.locator('.row', { hasText: 'Is the showroom open?' })
    await row.waitFor({ state: 'detached' })
    await visitor.send('And on Sunday?')
    await eventOf(stream, 'conversation.reopened')
    await page.locator('.row', { hasText: 'And on Sunday?' }).waitFor()
    await page
      .locator('.thread-title')
      .getByText(/· Closed/)
      .waitFor({ state: 'detached' })
    stream.close()
  })

  it('exchange a screenshot: the operator requests it, the visitor allows and uploads it, and the console shows it unchanged', async () => {
    const { visitor, stream } = await openConversation('I see an error')
    const picture = await readFile(picturePath)
    await button('Screenshot').click()
    await page.getByLabel('Purpose').fill('To see the error')
    await button('Send request').click()
    const { requestId, purpose } = (await eventOf(stream, 'screenshot.requested')).data
    expect(purpose).toBe('To see the error')
    await act(visitor, `/commands/screenshots/${requestId}/acknowledgements`, { consent: 'granted' })
    await command('Allowed, waiting for the image').waitFor()
    const uploaded = await visitor.call('POST', `/commands/screenshots/${requestId}/upload`, {
      body: picture,
      headers: { 'Content-Type': 'image/png', 'Idempotency-Key': randomUUID() },
    })
    expect(uploaded.status).toBe(201)
    await button(/^View image/).click()
    await page.getByRole('img', { name: /^Screenshot of the visitor/ }).waitFor()
    await until('the picture', () => page.evaluate("document.querySelector('img.screenshot').naturalWidth > 0"))
    const shown = await page.evaluate<{ type: string; bytes: number[] }>(
      'picture.arrayBuffer().then((buffer) => ({ type: picture.type, bytes: [...new Uint8Array(buffer)] }))',
    )
    expect(shown.type).toBe('image/png')
    expect(sha256(Buffer.from(shown.bytes))).toBe(sha256(picture))
    stream.close()
  })

  it('exchange a navigation request: a URL of another site is rejected, and the console shows the outcome of an allowed one', async () => {
    const { visitor, stream } = await openConversation('Where are the returns?')
    await button('Navigation').click()
    await page.getByLabel('URL').fill('https://elsewhere.example/')
    await button('Send request').click()
    await page.getByText(/must be on the visitor’s site/).waitFor()
    await page.getByLabel('URL').fill(`${demo.origin}/returns`)
    await page.getByLabel('Label', { exact: true }).fill('Returns')
    await button('Send request').click()
    await command('Waiting for the visitor').waitFor()
    const { commandId, url, label } = (await eventOf(stream, 'navigation.requested')).data
    expect({ url, label }).toEqual({ url: `${demo.origin}/returns`, label: 'Returns' })
    const path = `/commands/navigation/${commandId}/acknowledgements`
    await act(visitor, path, { outcome: 'accepted' })
    await command('Accepted, opening the page').waitFor()
    await act(visitor, path, { outcome: 'completed' })
    await command('Completed').waitFor()
    stream.close()
    // The browser logs the expected 400 of the rejected request.
    consoleErrors = consoleErrors.filter((text) => !/Failed to load resource.*400/.test(text))
  })

  it('see the effects of a ban: the visitor’s stream ends, and the console shows the ban and later its end, even after a reload', async () => {
    const clientInstanceId = randomUUID()
    const { visitor, stream } = await openConversation('Buy followers at spam.example', { clientInstanceId })
    await button('Ban visitor').click()
    await dialog().getByLabel('Reason').fill('Spam')
    await dialog().getByRole('button', { name: 'Ban visitor' }).click()
    await stream.ended
    expect(stream.events.at(-1)?.type).toBe('visitor.banned')
    expect(JSON.stringify(stream.events)).not.toContain('Spam')
    expect((await visitor.send('Hello?')).body).toMatchObject({ code: 'VisitorBanned', terminal: true })
    await expect(newVisitor({ clientInstanceId })).rejects.toThrow(/403 VisitorBanned/)

    await page.reload()
    await page
      .locator('.thread-title')
      .getByText(/· Banned/)
      .waitFor()
    await button('Lift ban').click()
    await dialog().getByRole('button', { name: 'Lift ban' }).click()
    await page
      .locator('.details')
      .getByText(/Ban lifted/)
      .waitFor()
    await page.reload()
    await page
      .locator('.details')
      .getByText(/Ban lifted/)
      .waitFor()
    await newVisitor({ clientInstanceId })
  })
})

describe('an installation on the real stack', () => {
  it('allows a new origin within 3 s after the operator has saved the origin', async () => {
    const origin = 'https://new.shop.example'
    await expect(newVisitor({ origin })).rejects.toThrow(/403 OriginNotAllowed/)
    await open(`installations/${demo.siteKey}`)
    await page.getByRole('textbox', { name: 'Allowed origins' }).fill(origin)
    await page.keyboard.press('Enter')
    await button(`Remove ${origin}`).waitFor()
    const saved = Date.now()
    const visitor = await until('a session there', () => newVisitor({ origin }).catch(() => undefined))
    // A gateway caches the rejection of an origin for one second. The rest is a margin.
    expect(Date.now() - saved).toBeLessThan(3_000)
    expect((await visitor.send('From the new page')).status).toBe(202)
  })

  it('shows the new identity secret once after a rotation; the new and the previous secret are valid', async () => {
    await open(`installations/${demo.siteKey}`)
    await button('Rotate').click()
    await button('Create new secret').click()
    const label = (await dialog().locator('label', { hasText: 'Secret (key' }).textContent())!
    const kid = /key (\S+)\)/.exec(label)![1]!
    const secret = await keepSecret(/^Secret/)
    await page.getByText(kid).waitFor()
    expect(await page.content()).not.toContain(secret)
    await page.reload()
    await page.getByText(kid).waitFor()
    expect(await page.content()).not.toContain(secret)
    for (const key of [{ kid, secret }, demo.identity]) {
      const visitor = await newVisitor()
      const assertion = signAssertion({ siteKey: demo.siteKey, ...key }, { claims: { sub: `customer-${kid}` } })
      expect((await act(visitor, '/sessions/identify', { assertion })).body).toMatchObject({
        identity: { state: 'verified' },
      })
    }
  })
})

describe('a lead on the real stack', () => {
  it('is captured by a form; its delivery fails, and a double click on the retry button retries the delivery once', async () => {
    // Nothing listens on this port, so that the delivery fails.
    const closedUrl = `http://127.0.0.1:${await freePort()}/leads`
    receiver.on('/leads', (_request, response) => response.writeHead(400).end())
    const secrets = [await subscribe(closedUrl), await subscribe(`${receiver.http}/leads`)]
    expect(new Set(secrets).size).toBe(2)

    await open(`installations/${demo.siteKey}`)
    for (const name of ['Offline form', 'Pre-chat form']) {
      await page.getByRole('switch', { name }).click()
      await until(`${name} is on`, () => page.getByRole('switch', { name }).isChecked())
    }
    const form = page.getByRole('form', { name: 'Offline form' })
    await form.getByRole('button', { name: /Add field/ }).click()
    await form.getByLabel('Label').fill('Your e-mail')
    await form.getByLabel(/Lead field name/).fill('email')
    await form.getByLabel('Type').selectOption('email')
    await form.getByLabel('Max length').fill('40')
    await form.getByRole('button', { name: 'Save offline form' }).click()
    await page.getByText('Offline form saved.').waitFor({ state: 'attached' })

    const visitor = await newVisitor()
    const config = await visitor.call('GET', `/config/${demo.siteKey}`)
    expect(config.body.capabilities).toMatchObject({ offlineForm: true, preChatForm: true })
    expect(config.body.forms.offline.fields).toMatchObject([{ name: 'email', type: 'email', maxLength: 40 }])
    const email = `ada-${randomUUID().slice(0, 8)}@example.org`
    expect((await act(visitor, '/forms/offline', { fields: { email } })).status).toBe(202)

    await open('leads')
    await page.getByText(email, { exact: true }).click()
    await page.getByText('Network error, connection refused, while connecting').waitFor()
    await page.getByText('Payload rejected, HTTP 400').waitFor()
    expect(receiver.to('/leads')).toHaveLength(1)
    expect(JSON.parse(receiver.to('/leads')[0]!.body.toString()).data).toMatchObject({ email })

    receiver.on('/leads', (_request, response) => response.writeHead(202).end())
    await page.getByRole('link', { name: `${receiver.http}/leads` }).click()
    await page.getByRole('heading', { level: 1, name: 'Delivery' }).waitFor()
    await button('Retry now').dblclick()
    await page.getByText('Accepted for transport, HTTP 202').waitFor()
    expect(receiver.to('/leads')).toHaveLength(2)
    expect(await page.locator('.attempt').count()).toBe(2)
    const [first, second] = receiver.to('/leads')
    expect(second!.headers['x-service-webhook-id']).toBe(first!.headers['x-service-webhook-id'])
    expect(second!.body.equals(first!.body)).toBe(true)
    for (const secret of secrets) expect(await page.content()).not.toContain(secret)
  })

  async function subscribe(address: string): Promise<string> {
    await open('subscriptions/new')
    await page.getByLabel('Destination URL').fill(address)
    await page.getByRole('combobox', { name: 'Fields to send' }).fill('email')
    await page.keyboard.press('Enter')
    await button('Create subscription').click()
    const secret = await keepSecret(/^Secret/)
    await page.getByRole('heading', { level: 1, name: new URL(address).host }).waitFor()
    expect(secret).toMatch(/^whsec_/)
    await page.reload()
    await page.getByText('Signing secrets').waitFor()
    expect(await page.content()).not.toContain(secret)
    return secret
  }
})

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
