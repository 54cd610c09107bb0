import { randomUUID } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { sharedChromium } from '../support/chromium.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { startLocalWorker } from '../support/local-worker.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { EventStream, Visitor } from '../support/visitor.ts'

/**
 * Starts a real stack. Before each test of the calling file, signs in an operator in a new page.
 * After each test, expects no error in the page.
 */
export function useLiveConsole(database: TestDatabase) {
  let stack: LocalStack
  let gatewayUrl: string
  let demo: DemoFile
  let receiver: Receiver
  let browser: Browser
  let page: Page
  /** Errors of the page, including policy violations. */
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
    await startLocalWorker(stack)
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
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const dialog = () => page.getByRole('dialog')
  const command = (text: string) => page.locator('.command').first().getByText(text)
  const answerField = () => page.getByRole('textbox', { name: 'Reply' })

  const newVisitor = (more: { origin?: string; clientInstanceId?: string } = {}) => stack.newVisitor(more)

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

  return {
    get page() {
      return page
    },
    get demo() {
      return demo
    },
    stack: () => stack,
    get receiver() {
      return receiver
    },
    ignoreErrors(pattern: RegExp) {
      consoleErrors = consoleErrors.filter((text) => !pattern.test(text))
    },
    open,
    button,
    dialog,
    command,
    answerField,
    newVisitor,
    openConversation,
    keepSecret,
  }
}

/** Calls a POST route as the visitor, with a new idempotency key. */
export function act(visitor: Visitor, path: string, body: unknown) {
  return visitor.call('POST', path, { body, headers: { 'Idempotency-Key': randomUUID() } })
}

/** Waits for an event of a visitor's stream. */
export const eventOf = (stream: EventStream, type: string) =>
  until(`the event ${type}`, () => stream.events.findLast((event) => event.type === type))
