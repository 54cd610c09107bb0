import { randomUUID } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { runAdmin } from '../../admin/run-admin.ts'
import { buildConsoleIfStale } from '../../console/build.ts'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { sharedChromium } from '../support/chromium.ts'
import { useLocalStack } from '../support/local-stack.ts'
import type { Visitor } from '../support/visitor.ts'

/**
 * Starts a real stack. Before each test of the calling file, signs in an operator in a new page.
 * After each test, expects no error in the page.
 */
export function useLiveConsole() {
  let gatewayUrl: string
  let demo: DemoFile
  let browser: Browser
  let page: Page
  /** Errors of the page, including policy violations. */
  let consoleErrors: string[]

  beforeAll(buildConsoleIfStale)
  const stack = useLocalStack({ env: { RATE_LIMIT_FACTOR: '100' } })
  beforeAll(async () => {
    demo = stack.demo
    gatewayUrl = stack.gateways[0]!.url
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
          console.error('CSP: ' + violatedDirective + ' ' + blockedURI))`,
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

  /** Opens a page of another person. */
  const newPage = async () => {
    const another = await (await browser.newContext({ reducedMotion: 'reduce' })).newPage()
    another.setDefaultTimeout(20_000)
    return another
  }

  /** Returns a link of the shell that signs in the first owner of a workspace. */
  async function ownerLink(workspaceId: string): Promise<string> {
    const output: string[] = []
    const args = ['console-link', '--owner', '--workspace', workspaceId, '--gateway', gatewayUrl, '--json']
    const io = { env: { DATA_DIR: stack.dataDir, CORE_URL: stack.cores[0]!.url }, printError: console.error }
    expect(await runAdmin({ ...io, args, print: (text) => void output.push(text) })).toBe(0)
    return JSON.parse(output.join('')).link
  }

  const open = (path: string) => page.goto(`${gatewayUrl}/console/${path}`)
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const dialog = () => page.getByRole('dialog')

  const newVisitor = () => stack.newVisitor()

  /** Starts a visitor with a message and a stream, and opens its conversation in the console. */
  async function openConversation(text: string) {
    const visitor = await newVisitor()
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
    newPage,
    ownerLink,
    open,
    button,
    dialog,
    newVisitor,
    openConversation,
    keepSecret,
  }
}

/** Calls a POST route as the visitor, with a new idempotency key. */
export function act(visitor: Visitor, path: string, body: unknown) {
  return visitor.call('POST', path, { body, headers: { 'Idempotency-Key': randomUUID() } })
}
