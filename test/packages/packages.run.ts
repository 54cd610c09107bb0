import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { packCoreClient, packWidget } from '../../dev/make/pack.ts'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import { sharedChromium } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { inheritedEnvironment } from '../support/processes.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const fixtures = join(import.meta.dirname, 'fixtures')

let folder: string
let widgetTarball: string
let coreClientTarball: string
let browser: Browser
let gateway: ScenarioServer
const stops: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'service-packages-'))
  widgetTarball = await packWidget(folder)
  coreClientTarball = await packCoreClient(folder)
  browser = await sharedChromium()
})
beforeEach(async () => {
  gateway = await startScenarioServer({ heartbeatMs: 1_000 })
})
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
  await gateway.close()
})

/** Copies a fixture and installs its dependencies and the widget's tarball. */
async function install(name: string, tarballs: string[] = [widgetTarball]): Promise<string> {
  const project = join(folder, name)
  await cp(join(fixtures, name), project, { recursive: true })
  await run('npm', ['install', '--no-audit', '--no-fund', ...tarballs], { cwd: project })
  return project
}

const settings = () => ({
  SITE_KEY: 'pk_friendly',
  API_BASE_URL: gateway.url,
  VITE_SITE_KEY: 'pk_friendly',
  VITE_API_BASE_URL: gateway.url,
  NEXT_TELEMETRY_DISABLED: '1',
  ASTRO_TELEMETRY_DISABLED: '1',
})

/** Environment in which projects run: with this process's version of Node. */
function environment() {
  const inherited = inheritedEnvironment()
  return { ...inherited, PATH: `${dirname(process.execPath)}:${inherited.PATH}` }
}

const inProject = (project: string) => ({ cwd: project, env: { ...environment(), ...settings() } })

const script = (project: string, name: string) => run('npm', ['run', name], inProject(project))

/** Serves the built project and opens it. */
async function open(project: string): Promise<{ page: Page; url: string; complaints: string[] }> {
  const port = await freePort()
  const child = spawn('npm', ['run', 'serve', '--', '--port', String(port)], {
    ...inProject(project),
    stdio: 'ignore',
    detached: true,
  })
  stops.push(async () => {
    const exited = once(child, 'exit')
    process.kill(-child.pid!, 'SIGTERM')
    await exited
  })
  const url = `http://127.0.0.1:${port}/`
  await until(
    'the page',
    () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    200,
  )
  const context = await browser.newContext({ locale: 'en-GB' })
  stops.push(() => context.close())
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    const isMissingIcon = message.location().url.endsWith('/favicon.ico')
    if (['error', 'warning'].includes(message.type()) && !isMissingIcon) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(url)
  return { page, url, complaints }
}

async function chat(page: Page) {
  await page.getByRole('button', { name: /^Open chat/ }).click()
  await page.getByRole('textbox', { name: 'Your message' }).fill('Do you ship to Graz?')
  await page.keyboard.press('Enter')
  await page.getByText(/· Sent$/).waitFor()
  gateway.conversation('pk_friendly').agentSays('Yes, we do.')
  await page.getByText('Yes, we do.').waitFor()
}

test('the packages pass publint and attw', async () => {
  const project = await install('tools', [])
  for (const tarball of [widgetTarball, coreClientTarball]) {
    const { stdout } = await run('npx', ['publint', '--strict', tarball], { cwd: project })
    expect(stdout).toContain('All good!')
    await run('npx', ['attw', '--profile', 'esm-only', tarball], { cwd: project })
  }
})

test.each(['build:development', 'build'])(
  'a Vite project with React and strict mode (%s) begins one session when the visitor opens the chat, and removes the chat with its component',
  async (build) => {
    const project = await install('vite')
    await script(project, build)
    const { page, complaints } = await open(project)
    await page.getByRole('button', { name: /^Open chat/ }).waitFor()
    expect(gateway.requests.map(({ path }) => path)).toEqual(['/config/pk_friendly'])
    await chat(page)
    expect(gateway.sessionCount('pk_friendly')).toBe(1)
    await page.getByText('1 received').waitFor()

    await page.keyboard.press('Escape')
    gateway.conversation('pk_friendly').agentSays('Anything else?')
    await page.getByText('1 unread').waitFor()
    await page.locator('#toggle').click()
    await expect.poll(() => page.locator('[data-service-widget]').count()).toBe(0)
    await page.locator('#toggle').click()
    await page.getByRole('button', { name: /^Open chat/ }).click()
    await page.getByText('Anything else?').waitFor()
    expect(await page.locator('[data-service-widget]').count()).toBe(1)
    expect(gateway.sessionCount('pk_friendly')).toBe(1)
    expect(complaints).toEqual([])
  },
)

test.each(['vue', 'svelte'])(
  'a %s project as in docs/recipes.md opens the chat with a button of its own',
  async (name) => {
    const project = await install(name)
    await script(project, 'build')
    const { page, complaints } = await open(project)
    await page.getByRole('button', { name: /^Open chat/ }).waitFor()
    expect(gateway.sessionCount('pk_friendly')).toBe(0)
    await page.evaluate(() => (globalThis as never as { darken?: () => void }).darken?.())
    await page.getByRole('button', { name: 'Help' }).click()
    await page.getByText('We are online').waitFor()
    expect(gateway.sessionCount('pk_friendly')).toBe(1)
    const dialog = page.getByRole('dialog')
    const colorScheme = () =>
      dialog.evaluate((element) => element.ownerDocument.defaultView!.getComputedStyle(element).colorScheme)
    if (name === 'vue') await expect.poll(colorScheme).toBe('dark')
    expect(complaints).toEqual([])
  },
)

test('a Next project renders on the server, hydrates without a warning and shows the chat', async () => {
  const project = await install('next')
  await script(project, 'build')
  const { page, url, complaints } = await open(project)
  expect(await (await fetch(url)).text()).toContain('<h1>A shop</h1>')
  await chat(page)
  expect(gateway.sessionCount('pk_friendly')).toBe(1)
  expect(complaints).toEqual([])
})

test('an Astro project renders the hook on the server, hydrates without a warning and shows the chat', async () => {
  const project = await install('astro')
  await script(project, 'build')
  const { page, url, complaints } = await open(project)
  expect(await (await fetch(url)).text()).toContain('The chat is loading')
  await chat(page)
  await page.getByText('The chat is ready').waitFor()
  expect(gateway.sessionCount('pk_friendly')).toBe(1)
  expect(complaints).toEqual([])
})
