import { createHash } from 'node:crypto'
import { AxeBuilder } from '@axe-core/playwright'
import { MongoClient } from 'mongodb'
import type { Browser, Page, Route } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sharedChromium } from '../support/chromium.ts'
import type { Operator } from '../support/operator.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
let shop: Shop
let operator: Operator
let browser: Browser
const agent = { displayName: 'Anna Keller' }

beforeAll(async () => {
  // The lifetime of commands is long enough for a test to answer a command, and short enough for a
  // test to wait until a command expires.
  shop = await openShop(database, { coreEnv: { COMMAND_LIFETIME_SECONDS: '20', TYPING_SECONDS: '4' } })
  operator = shop.operator
  await configure({ navigation: true, screenshots: true })
  browser = await sharedChromium()
})
afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
})

interface Configuration {
  appearance: { translations?: object }
  capabilities: Record<string, boolean>
  forms: { preChat?: object; offline?: object }
}

async function configuration(): Promise<Configuration> {
  const url = `${shop.stack.gateways[0]!.url}/api/integrations/v1/widget/config/${shop.siteKey}`
  const response = await fetch(url, { headers: { Origin: shop.origin, 'X-Service-Widget-Version': '1.0' } })
  return (await response.json()) as Configuration
}

/** Changes the installation, and waits until the gateway returns the new configuration. */
async function configure(capabilities: Record<string, boolean>, forms?: object) {
  await operator.workspaces.updateInstallation({ siteKey: shop.siteKey, capabilities, ...(forms && { forms }) })
  await until('the configuration to take effect', async () => {
    const config = await configuration()
    const isSame = Object.entries(capabilities).every(([name, on]) => config.capabilities[name] === on)
    const hasForm =
      (!capabilities.preChatForm || config.forms.preChat) && (!capabilities.offlineForm || config.forms.offline)
    return isSame && hasForm
  })
}

/** Overrides the opening hours, as an operator does at closing time. */
const setMode = (mode: 'auto' | 'online' | 'away') =>
  operator.workspaces.updateInstallation({ siteKey: shop.siteKey, availability: { mode } })

interface Visit {
  page: Page
  sessionId: string
  conversationId: string
  complaints: string[]
}

/** @param onConfig intercepts the page's request for the configuration. */
async function visit(onConfig?: (route: Route) => Promise<void>): Promise<Visit> {
  const context = await browser.newContext({ permissions: [], reducedMotion: 'reduce' })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  if (onConfig) await page.route('**/config/*', onConfig)
  const created = page.waitForResponse((response) => response.url().endsWith('/sessions'))
  await page.goto(shop.origin)
  const open = page.getByRole('button', { name: /^Open chat/ })
  await open.click()
  const { sessionId, conversationId } = (await (await created).json()) as Visit
  return { page, sessionId, conversationId, complaints }
}

const field = (page: Page) => page.getByRole('textbox', { name: 'Your message' })
const online = (page: Page) => page.getByText('We are online').waitFor()

async function write(page: Page, text: string) {
  await field(page).fill(text)
  await page.keyboard.press('Enter')
  await page.getByText(/· Sent$/).waitFor()
}

async function commandState(commandId: string): Promise<string | undefined> {
  return (await operator.commands.getCommand({ commandId })).command?.state
}

async function screenshotRequested(sessionId: string, purpose?: string): Promise<string> {
  return (await operator.commands.requestScreenshot({ sessionId, purpose })).command!.commandId
}

async function leadsOf(conversationId: string) {
  const client = new MongoClient(database.uri)
  const leads = await client.db(database.name).collection('leads').find({ conversationId }).toArray()
  await client.close()
  return leads
}

async function arrivedSha256(commandId: string): Promise<{ declared: string; actual: string; contentType: string }> {
  const hash = createHash('sha256')
  let header: { sha256: string; contentType: string } | undefined
  for await (const { part } of operator.commands.getScreenshot({ commandId })) {
    if (part.case === 'header') header = part.value
    else if (part.case === 'chunk') hash.update(part.value)
  }
  return { declared: header!.sha256, actual: hash.digest('hex'), contentType: header!.contentType }
}

async function expectAccessible(page: Page) {
  // The rule about duplicate banners is disabled, because axe counts the panel's header element as
  // a second banner of the page.
  const axe = new AxeBuilder({ page }).include('[data-service-widget]').disableRules('landmark-no-duplicate-banner')
  const { violations } = await axe.analyze()
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
}

describe('typing', () => {
  it('is shown to the other side, and ends when the message is sent', async () => {
    const { page, conversationId, complaints } = await visit()
    await online(page)
    await write(page, 'Hello')
    const seen: string[] = []
    const watching = new AbortController()
    const inbox = operator.messaging.watchConversations({}, { signal: watching.signal })
    const watched = (async () => {
      for await (const { frame } of inbox) {
        if (frame.case === 'ready') seen.push('ready')
        if (frame.case !== 'changed' || frame.value.conversation?.conversationId !== conversationId) continue
        seen.push(
          ...frame.value.events.map(({ type, author, message }) => `${type} ${(author ?? message?.author)?.kind}`),
        )
      }
    })().catch(() => {})
    await until('the inbox', () => seen.includes('ready'))
    const posts: (string | null)[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/typing') && request.method() === 'POST') posts.push(request.postData())
    })
    const begun = performance.now()
    await field(page).pressSequentially('Do you ship', { delay: 20 })
    await until('the visitor’s typing', () => seen.some((one) => one.startsWith('typing.started')))
    await field(page).fill('')
    await until('the report of its end', () => posts.at(-1)?.includes('stopped'))
    await until('its end', () => seen.some((one) => one.startsWith('typing.stopped')))
    // The widget reports the start of typing once. On a slow machine, the typing takes longer, and
    // the widget repeats the report every five seconds.
    const starts = posts.filter((body) => body?.includes('started')).length
    expect(starts).toBeLessThanOrEqual(1 + Math.floor((performance.now() - begun) / 5_000))

    await operator.messaging.setTyping({ conversationId, state: 1, agent })
    await page.getByText('Anna Keller is typing').waitFor()
    await expectAccessible(page)
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: 'typed', body: 'We do.', agent })
    await page.getByText('We do.').waitFor()
    expect(await page.getByText('Anna Keller is typing').count()).toBe(0)

    // The agent's client does not report the end of this typing, so the typing must expire.
    await operator.messaging.setTyping({ conversationId, state: 1, agent })
    await page.getByText('Anna Keller is typing').waitFor()
    await page.getByText('Anna Keller is typing').waitFor({ state: 'detached', timeout: 15_000 })
    expect(complaints).toEqual([])
    watching.abort()
    await watched
  })
})

describe('a message', () => {
  it('shows its delivery status, which never moves back, and the name of the assigned agent', async () => {
    const { page, conversationId, complaints } = await visit()
    await online(page)
    await page.context().setOffline(true)
    await field(page).fill('Is anybody there?')
    await page.keyboard.press('Enter')
    await page.getByText('Will be sent when you are back online').waitFor()
    expect(await page.getByText(/· Sent$/).count()).toBe(0)
    await page.context().setOffline(false)
    await page.getByText(/· Sent$/).waitFor()

    const { messages } = await operator.messaging.listMessages({ conversationId })
    const upToSequence = messages[0]!.sequence
    await operator.messaging.assignAgent({ conversationId, agent })
    await page.getByText('Anna Keller is now looking after you').waitFor()
    await page.getByText('You’re chatting with Anna Keller').waitFor()
    await operator.messaging.updateMessageState({ conversationId, upToSequence, state: 'delivered' })
    await page.getByText(/· Delivered$/).waitFor()
    await operator.messaging.updateMessageState({ conversationId, upToSequence, state: 'read' })
    await page.getByText(/· Read$/).waitFor()
    await operator.messaging.closeConversation({ conversationId })
    await page.getByText('This chat was marked as done.').waitFor()
    await expectAccessible(page)

    await page.reload()
    await page.getByText(/· Read$/).waitFor()
    await page.getByText('Anna Keller is now looking after you').waitFor()
    await page.getByText('This chat was marked as done.').waitFor()
    await operator.messaging.unassignAgent({ conversationId })
    await page.getByText('Anna Keller has left this chat').waitFor()
    await online(page)
    expect(complaints.filter((one) => !/ERR_INTERNET_DISCONNECTED|ERR_NETWORK/.test(one))).toEqual([])
  })
})

describe('the form before a chat', () => {
  const preChat = {
    fields: [
      { name: 'name', label: 'Your name', type: 'text', required: true },
      { name: 'email', label: 'Email address', type: 'email', required: true },
      { name: 'phone', label: 'Phone', type: 'tel', required: false },
    ],
  }

  it('can be filled in by keyboard, marks invalid fields, and captures one lead even if the response is lost', async () => {
    await configure({ preChatForm: true }, { preChat })
    const { page, conversationId } = await visit()
    await page.getByRole('heading', { name: 'Before we start' }).waitFor()
    expect(await field(page).count()).toBe(0)
    const email = page.getByLabel('Email address')
    expect(await email.getAttribute('autocomplete')).toBe('email')
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.keyboard.press('Tab')
    await page.keyboard.type('ada at example')
    await page.keyboard.press('Enter')
    await page.getByText('Please enter an email address').waitFor()
    expect(await email.getAttribute('aria-invalid')).toBe('true')
    expect(await email.evaluate((input) => input.matches(':focus'))).toBe(true)
    const described = await email.getAttribute('aria-describedby')
    expect(await page.locator(`[data-service-widget] #${described}`).textContent()).toContain('name@example.com')
    await expectAccessible(page)

    // The typed text must be kept when the chat is closed and opened again.
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: /^Open chat/ }).click()
    expect(await page.getByLabel('Your name').inputValue()).toBe('Ada Lovelace')

    await email.fill('ada@example.com')
    let lost = 0
    const keys: (string | undefined)[] = []
    await page.route('**/forms/pre-chat', async (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      keys.push(route.request().headers()['idempotency-key'])
      if (lost > 0) return route.continue()
      lost += 1
      await route.fetch()
      await route.abort('connectionreset')
    })
    await page.getByRole('button', { name: 'Start chat' }).click()
    await page.getByText('We got your details.').waitFor()
    await field(page).waitFor()
    expect(keys).toHaveLength(2)
    expect(keys[0]).toBe(keys[1])

    const leads = await leadsOf(conversationId)
    expect(leads).toHaveLength(1)
    expect(leads[0]).toMatchObject({ fields: { name: 'Ada Lovelace', email: 'ada@example.com' } })

    await write(page, 'Now then')
    await page.reload()
    await page.getByText('Now then').waitFor()
    expect(await page.getByRole('heading', { name: 'Before we start' }).count()).toBe(0)
    await configure({ preChatForm: false })
  })
})

describe('the offline form', () => {
  it('marks fields that the service rejects, can be skipped to write a message, and captures a lead', async () => {
    const offline = { fields: [{ name: 'email', label: 'Email address', type: 'email', required: true }] }
    await configure({ offlineForm: true }, { offline })
    const { page, conversationId } = await visit(async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), availability: { online: false } } })
    })
    await page.getByRole('heading', { name: 'We are away at the moment' }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Write a message instead' }).click()
    expect(await field(page).evaluate((element) => element.matches(':focus'))).toBe(true)
    await page.getByRole('button', { name: 'Leave your details instead' }).click()
    const email = page.getByLabel('Email address')
    await email.fill('ada@example.com')

    const refusal = {
      code: 'ValidationFailed',
      retryable: false,
      terminal: false,
      correlationId: 'cor_1',
      issues: [{ path: '/fields/email', rule: 'format' }],
    }
    const headers = { 'Access-Control-Allow-Origin': shop.origin }
    await page.route('**/forms/offline', (route) => route.fulfill({ status: 400, json: refusal, headers }), {
      times: 1,
    })
    await page.getByRole('button', { name: 'Send details' }).click()
    await page.getByText('Please enter an email address').waitFor()
    expect(await email.evaluate((input) => input.matches(':focus'))).toBe(true)
    expect(await page.getByText('We got your details.').count()).toBe(0)

    await email.fill('ada@example.org')
    await page.getByRole('button', { name: 'Send details' }).click()
    await page.getByText('We got your details.').waitFor()
    expect(await leadsOf(conversationId)).toMatchObject([{ fields: { email: 'ada@example.org' } }])
    await configure({ offlineForm: false })
  })
})

describe('a request for a screenshot', () => {
  it('can be granted with a chosen file: the preview is shown, and the bytes arrive unchanged', async () => {
    const { page, sessionId, complaints } = await visit()
    await online(page)
    const commandId = await screenshotRequested(sessionId, 'To see your basket')
    await page.getByRole('heading', { name: 'Support asks for a screenshot' }).waitFor()
    await page.getByText('To see your basket', { exact: true }).waitFor()
    await expectAccessible(page)
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Choose a picture' }).click()
    const picture = await page.screenshot()
    await (await chooser).setFiles({ name: 'basket.png', mimeType: 'image/png', buffer: picture })
    await page.getByRole('img', { name: 'This is exactly what will be sent.' }).waitFor()
    expect(await commandState(commandId)).toBe('requested')
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Send picture' }).click()
    await page.getByText('You sent a screenshot.').waitFor()

    const sha256 = createHash('sha256').update(picture).digest('hex')
    expect(await arrivedSha256(commandId)).toEqual({ declared: sha256, actual: sha256, contentType: 'image/png' })
    expect(await page.locator('[data-service-widget] canvas').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  it('can be granted by sharing the screen: one frame without the chat is sent, then sharing ends', async () => {
    const { page, sessionId, complaints } = await visit()
    await online(page)
    await page.evaluate(`{
      const own = navigator.mediaDevices.getDisplayMedia.bind(navigator.mediaDevices)
      navigator.mediaDevices.getDisplayMedia = async (options) => (window.shared = await own(options))
    }`)
    const commandId = await screenshotRequested(sessionId)
    await page.getByRole('button', { name: 'Share screen' }).click()
    await page.getByRole('button', { name: 'Send picture' }).waitFor()
    expect(await page.evaluate(`window.shared.getTracks().map((track) => track.readyState)`)).toEqual(['ended'])
    await page.getByRole('button', { name: 'Send picture' }).click()
    await page.getByText('You sent a screenshot.').waitFor()
    const { declared, actual, contentType } = await arrivedSha256(commandId)
    expect(actual).toBe(declared)
    expect(contentType).toBe('image/png')
    expect(complaints).toEqual([])
  })

  it('captures nothing if the visitor denies it', async () => {
    const { page, sessionId, complaints } = await visit()
    await online(page)
    const commandId = await screenshotRequested(sessionId)
    await page.getByRole('button', { name: 'No thanks' }).click()
    await page.getByText('You did not share a screenshot.').waitFor()
    expect(await commandState(commandId)).toBe('denied')
    expect(await page.getByRole('button', { name: 'Share screen' }).count()).toBe(0)
    expect(complaints).toEqual([])
  })

  it('shows a countdown; if the request expires during the preview, nothing is sent', async () => {
    const { page, sessionId, complaints } = await visit()
    await online(page)
    const commandId = await screenshotRequested(sessionId)
    await page.getByText(/^Expires in 0:\d\d$/).waitFor()
    await page.getByRole('button', { name: 'Share screen' }).click()
    await page.getByRole('button', { name: 'Send picture' }).waitFor()
    await page.getByText('The request for a screenshot has expired. Nothing was sent.').waitFor()
    expect(await page.locator('[data-service-widget] canvas').count()).toBe(0)
    expect(await commandState(commandId)).toBe('expired')
    expect(complaints).toEqual([])
  })

  it('is removed when the agent cancels it', async () => {
    const { page, sessionId } = await visit()
    await online(page)
    const commandId = await screenshotRequested(sessionId)
    await page.getByRole('button', { name: 'Share screen' }).waitFor()
    await operator.commands.cancelCommand({ commandId })
    await page.getByText('The request for a screenshot was taken back. Nothing was sent.').waitFor()
    expect(await page.getByRole('button', { name: 'Share screen' }).count()).toBe(0)
  })

  it('offers to choose a file if the browser cannot share the screen', async () => {
    const { page, sessionId } = await visit()
    await online(page)
    await page.evaluate(
      `navigator.mediaDevices.getDisplayMedia = () => Promise.reject(new DOMException('', 'NotAllowedError'))`,
    )
    const commandId = await screenshotRequested(sessionId)
    await page.getByRole('button', { name: 'Share screen' }).click()
    await page.getByText('Nothing was captured.').waitFor()
    expect(await commandState(commandId)).toBe('requested')
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Choose a picture' }).click()
    await (await chooser).setFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('no picture') })
    await page.getByText('Please choose a PNG, JPEG or WebP picture.').waitFor()
  })
})

describe('a request to go to another page', () => {
  it('can be accepted by keyboard, and the next page reports that it was opened', async () => {
    const { page, sessionId, complaints } = await visit()
    await online(page)
    const url = `${shop.origin}/?lamp=dune`
    const { command } = await operator.commands.requestNavigation({ sessionId, url, label: 'The lamp Dune' })
    await page.getByRole('heading', { name: 'Support suggests a page' }).waitFor()
    await page.getByText('The lamp Dune', { exact: true }).waitFor()
    expect(await page.locator('[data-service-widget] .target-url').textContent()).toContain(new URL(shop.origin).host)
    await expectAccessible(page)
    expect(await commandState(command!.commandId)).toBe('requested')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    expect(await page.getByRole('button', { name: 'Go to page' }).evaluate((one) => one.matches(':focus'))).toBe(true)
    await page.keyboard.press('Enter')
    await page.waitForURL(url)
    await until('the arrival', async () => (await commandState(command!.commandId)) === 'completed')
    const { command: after } = await operator.commands.getCommand({ commandId: command!.commandId })
    expect(after?.transitions.map(({ state }) => state)).toEqual(['requested', 'accepted', 'completed'])
    await page.getByText('You went to the suggested page.').waitFor()
    expect(complaints).toEqual([])
  })

  it('does not change the page if the visitor declines it', async () => {
    const { page, sessionId } = await visit()
    await online(page)
    const { command } = await operator.commands.requestNavigation({ sessionId, url: `${shop.origin}/?lamp=dune` })
    await page.getByRole('button', { name: 'No thanks' }).click()
    await page.getByText('You stayed on this page.').waitFor()
    expect(await commandState(command!.commandId)).toBe('declined')
    expect(page.url()).toBe(`${shop.origin}/`)
  })

  it('is counted as unread on the launcher while the chat is closed', async () => {
    const { page, sessionId } = await visit()
    await online(page)
    await page.keyboard.press('Escape')
    await operator.commands.requestNavigation({ sessionId, url: `${shop.origin}/?lamp=dune` })
    await page.getByRole('button', { name: 'Open chat, 1 unread message' }).click()
    await page.getByRole('heading', { name: 'Support suggests a page' }).waitFor()
  })
})

describe('the URL of the visitor’s page', () => {
  it('is reported without its query when it changes without a reload', async () => {
    const { page, sessionId } = await visit()
    await online(page)
    await page.evaluate(`history.pushState({}, '', '/lamps/dune?token=secret#buy'); document.title = 'Dune'`)
    await until('the page', async () => {
      const { session } = await operator.sessions.getSession({ sessionId })
      return session?.pageContext?.url === `${shop.origin}/lamps/dune` && session.pageContext.title === 'Dune'
    })
  })
})

describe('the end of the opening hours', () => {
  it('makes an open chat offer the offline form, and a submitted form captures a lead', async () => {
    const fields = [{ name: 'email', label: 'Your e-mail', type: 'email', required: true }]
    await configure({ offlineForm: true, preChatForm: false }, { offline: { fields } })
    const { page, conversationId, complaints } = await visit()
    const second = await visit()
    await online(page)
    await online(second.page)
    await second.page.getByRole('textbox', { name: 'Your message' }).fill('I am just writing')
    await setMode('away')
    const title = page.getByText('We are away at the moment')
    await title.waitFor({ timeout: 75_000 })
    await expectAccessible(page)
    // A visitor who is writing a message keeps the message and gets a button that opens the form.
    await second.page.getByRole('button', { name: 'Leave your details instead' }).waitFor()
    expect(await field(second.page).inputValue()).toBe('I am just writing')
    const email = page.getByRole('textbox', { name: 'Your e-mail' })
    await email.fill('ada@example.com')
    // A form that the visitor has begun to fill in stays open when the opening hours begin.
    await setMode('online')
    await online(second.page)
    await second.page.getByRole('button', { name: 'Leave your details instead' }).waitFor({ state: 'hidden' })
    expect(await email.inputValue()).toBe('ada@example.com')
    await setMode('away')
    await page.getByRole('button', { name: 'Send details' }).click()
    await until('the lead', async () => (await leadsOf(conversationId)).length === 1)
    expect((await leadsOf(conversationId))[0]).toMatchObject({
      source: 'offline-form',
      fields: { email: 'ada@example.com' },
    })
    await title.waitFor({ state: 'hidden' })
    expect([...complaints, ...second.complaints]).toEqual([])
    // A chat that is loaded outside the opening hours shows the form at once, and still offers it
    // after a message.
    const late = await visit()
    await late.page.getByText('We are away at the moment').waitFor()
    await late.page.getByRole('button', { name: 'Write a message instead' }).click()
    await write(late.page, 'Hello')
    await late.page.getByRole('button', { name: 'Leave your details instead' }).click()
    await late.page.getByRole('textbox', { name: 'Your e-mail' }).fill('li@example.com')
    await late.page.getByRole('button', { name: 'Send details' }).click()
    await until('the lead', async () => (await leadsOf(late.conversationId)).length === 1)
    await field(late.page).waitFor()
    await setMode('auto')
    await configure({ offlineForm: false })
  })
})

describe('title and greeting', () => {
  it('are shown in the language of the visitor', async () => {
    await operator.workspaces.updateInstallation({
      siteKey: shop.siteKey,
      appearance: { translations: { de: { title: 'Laden', greeting: 'Guten Tag' }, 'de-AT': { greeting: 'Servus' } } },
    })
    await until('the translations to take effect', async () => (await configuration()).appearance.translations)
    const page = await (await browser.newContext()).newPage()
    // The page declares Austrian German as its language before the widget reads the page's
    // language.
    await page.addInitScript(`new MutationObserver(() => (document.documentElement.lang = 'de-AT')).observe(document, {
      childList: true,
    })`)
    await page.goto(shop.origin)
    await page.getByRole('button', { name: /^Chat öffnen/ }).click()
    await page.getByRole('heading', { name: 'Laden' }).waitFor()
    await page.getByText('Servus').waitFor()
  })
})
