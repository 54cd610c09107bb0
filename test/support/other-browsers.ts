import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from './free-port.ts'
import { accessibilityTags, pageSizes, tabThrough, zoomedSizes } from './page-checks.ts'
import { until } from './until.ts'

/** A browser other than Chromium, with one page. */
export interface OtherBrowser {
  goto(url: string): Promise<void>
  /** Evaluates an expression in the page and returns its JSON value. Awaits promises. */
  evaluate<T = unknown>(expression: string): Promise<T>
  /** Presses the Tab key in the page. */
  press(key: 'Tab'): Promise<void>
  /** Sets the size of the page in CSS pixels. WebKit's window has a frame, so its page is a little smaller. */
  resize(size: { width: number; height: number }): Promise<void>
  close(): Promise<void>
}

/** How to start each browser. Returns undefined if the browser is not installed. */
export const otherBrowsers: Record<string, () => Promise<OtherBrowser | undefined>> = {
  Firefox: async () => ((await isInstalled('firefox-esr')) ? startFirefox() : undefined),
  'Firefox with forced colours': async () =>
    (await isInstalled('firefox-esr')) ? startFirefox({ 'browser.display.document_color_use': 2 }) : undefined,
  WebKit: async () =>
    (await isInstalled('WebKitWebDriver', 'xvfb-run')) && (await exists(miniBrowser)) ? startWebKit() : undefined,
}

/** Shown if a browser is missing. */
export const howToInstall = 'apt-get install --no-install-recommends firefox-esr webkit2gtk-driver xvfb xauth'

const miniBrowser = '/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser'

const axe = () => readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Returns what is wrong with the whole page: violations that axe finds and sideways scrolling, both at each size, and
 * what the Tab key does not reach or does not mark.
 *
 * @param more expression of the page that returns further faults.
 * @param root expression of the page: where the Tab key must reach everything
 */
export async function faultsOfPage(browser: OtherBrowser, more = '[]', root = 'document'): Promise<string[]> {
  await browser.evaluate(`(() => { ${await axe()} })()`)
  const { missed, unseen } = await tabThrough(browser, root)
  const found = [...missed.map((each) => `not reached: ${each}`), ...unseen.map((each) => `not marked: ${each}`)]
  for (const [size, viewport] of Object.entries({ ...pageSizes, ...zoomedSizes })) {
    await browser.resize(viewport)
    // With forced colours, the user chooses the colours.
    const faults = await browser.evaluate<string[]>(`axe
      .run({
        runOnly: ${JSON.stringify(accessibilityTags)},
        resultTypes: ['violations'],
        rules: { 'color-contrast': { enabled: !matchMedia('(forced-colors: active)').matches } },
      })
      .then(({ violations }) => [
        ...violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)),
        ...(document.documentElement.scrollWidth > innerWidth ? ['scrolls sideways'] : []),
        ...${more},
      ])`)
    found.push(...faults.map((fault) => `${size}: ${fault}`))
  }
  await browser.resize(pageSizes.desktop)
  return found
}

/** What WebDriver and WebDriver BiDi do for a press of the Tab key. */
const pressOfTab = {
  actions: [{ type: 'key', id: 'keyboard', actions: ['keyDown', 'keyUp'].map((type) => ({ type, value: '\uE004' })) }],
}

/**
 * Starts Firefox, which speaks WebDriver BiDi over a WebSocket.
 *
 * @param preferences of the user
 */
async function startFirefox(preferences: Record<string, unknown> = {}): Promise<OtherBrowser> {
  const profile = await mkdtemp(join(tmpdir(), 'firefox-'))
  const lines = Object.entries(preferences).map(([name, value]) => `user_pref("${name}", ${value});\n`)
  await writeFile(join(profile, 'user.js'), lines.join(''))
  const child = spawn(
    'firefox-esr',
    ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'],
    { stdio: ['ignore', 'ignore', 'pipe'], detached: true },
  )
  let address = ''
  createInterface(child.stderr!).on('line', (line) => {
    address ||= /WebDriver BiDi listening on (ws:\S+)/.exec(line)?.[1] ?? ''
  })
  await until('Firefox', () => address)
  const socket = new WebSocket(`${address}/session`)
  await once(socket, 'open')
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  let last = 0
  async function call(method: string, params: object): Promise<Record<string, unknown>> {
    last += 1
    const answered = new Promise<Answer>((resolve) => waiting.set(last, resolve))
    socket.send(JSON.stringify({ id: last, method, params }))
    const answer = await answered
    if (answer.type !== 'success') throw new Error(`${method}: ${answer.message}`)
    return answer.result
  }
  await call('session.new', { capabilities: {} })
  // In the first tab, the field for the address keeps the focus.
  const { context } = (await call('browsingContext.create', { type: 'tab' })) as { context: string }
  return {
    async goto(url) {
      await call('browsingContext.navigate', { context, url, wait: 'complete' })
    },
    async evaluate(expression) {
      const wrapped = `(async () => JSON.stringify((await (${expression})) ?? null))()`
      const answer = await call('script.evaluate', { expression: wrapped, target: { context }, awaitPromise: true })
      const { type, result, exceptionDetails } = answer as {
        type: string
        result: { value: string }
        exceptionDetails?: { text: string }
      }
      if (type !== 'success') throw new Error(exceptionDetails?.text)
      return JSON.parse(result.value)
    },
    async press() {
      await call('input.performActions', { context, ...pressOfTab })
    },
    async resize(viewport) {
      await call('browsingContext.setViewport', { context, viewport })
    },
    async close() {
      socket.close()
      await stop(child)
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

interface Answer {
  id: number
  type: 'success' | 'error'
  message?: string
  result: Record<string, unknown>
}

/** Starts MiniBrowser, the small browser of WebKitGTK, on a virtual display. WebDriver over HTTP controls it. */
async function startWebKit(): Promise<OtherBrowser> {
  const port = await freePort()
  const child = spawn('xvfb-run', ['-a', 'WebKitWebDriver', `--port=${port}`], { stdio: 'ignore', detached: true })
  async function call<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
    })
    const { value } = (await response.json()) as { value: T & { message?: string } }
    if (!response.ok) throw new Error(`${path}: ${value.message}`)
    return value
  }
  await until('WebKit', () => call('GET', '/status').catch(() => undefined), 100)
  const { sessionId } = await call<{ sessionId: string }>('POST', '/session', {
    capabilities: {
      alwaysMatch: { 'webkitgtk:browserOptions': { binary: miniBrowser, args: ['--automation'] } },
    },
  })
  const session = `/session/${sessionId}`
  return {
    async goto(url) {
      await call('POST', `${session}/url`, { url })
    },
    async evaluate(expression) {
      const script = `const done = arguments[0]
        Promise.resolve().then(() => (${expression})).then((value) => done({ value: value ?? null }), (error) => done({ error: String(error) }))`
      const answer = await call<{ value: never; error?: string }>('POST', `${session}/execute/async`, {
        script,
        args: [],
      })
      if (answer.error !== undefined) throw new Error(answer.error)
      return answer.value
    },
    async press() {
      await call('POST', `${session}/actions`, pressOfTab)
    },
    async resize(size) {
      await call('POST', `${session}/window/rect`, { x: 0, y: 0, ...size })
    },
    async close() {
      await call('DELETE', session).catch(() => {})
      await stop(child)
    },
  }
}

/** Stops a process and its children. */
async function stop(child: ChildProcess) {
  const exited = once(child, 'exit')
  process.kill(-child.pid!, 'SIGTERM')
  await exited
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

async function isInstalled(...programs: string[]): Promise<boolean> {
  const folders = ['/usr/local/bin', '/usr/bin']
  const found = await Promise.all(
    programs.map(async (program) =>
      (await Promise.all(folders.map((folder) => exists(join(folder, program))))).includes(true),
    ),
  )
  return !found.includes(false)
}
