import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'vite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { widgetLocales } from '../../contract/widget-locales.ts'
import { packWidget } from '../../dev/make/pack.ts'
import { startScenarioServer } from '../../widget/test/scenario-server.ts'
import { sharedChromium } from '../support/chromium.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { listen } from '../support/listen.ts'

const run = promisify(execFile)
const compiler = join(import.meta.dirname, '../../node_modules/.bin/tsc')
let project: string

const consumer = `
import { createServiceWidget, englishTexts, WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION, type WidgetErrorDetail } from '@service/widget'
import { createServiceClient, type WidgetMessage } from '@service/widget/client'
const widget = createServiceWidget({ siteKey: 'pk_x', apiBaseUrl: 'https://chat.example', theme: 'dark', localeTexts: { de: { send: 'Los' } } })
const stop: () => void = widget.on('message.received', ({ message }) => console.log(message.body.length))
widget.on('error', (error: WidgetErrorDetail) => console.log(error.code, error.recoverable))
// @ts-expect-error no such event
widget.on('message.recieved', () => {})
// @ts-expect-error a site key is needed
createServiceWidget({ apiBaseUrl: 'https://chat.example' })
const client = createServiceClient({ siteKey: 'pk_x', apiBaseUrl: 'https://chat.example', storage: 'memory' })
const messages: readonly WidgetMessage[] = client.messages()
console.log(messages.length, widget.unreadCount(), englishTexts.send, WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION)
stop()
`

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'widget-consumer-'))
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  const tarball = await packWidget(project)
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project })
})
afterAll(() => rm(project, { recursive: true, force: true }))

it('the npm package contains its exports, and no sources, tests or secrets', async () => {
  const installed = join(project, 'node_modules/@service/widget')
  const found = await readdir(installed, { recursive: true, withFileTypes: true })
  const packed = found
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name).slice(installed.length + 1))
  expect(packed).toEqual(expect.arrayContaining(['package.json', 'dist/index.js', 'dist/client.js', 'dist/widget.js']))
  expect(
    packed.filter(
      (path) =>
        !/^(package\.json|README\.md|dist\/(\w+\.js|widget\.js(on|\.br|\.gz)|(chunks\/)?[\w-]+\.js(\.map)?|widget\/v1\/\w+\/[\w-]+\.js(\.br|\.gz)?|types\/.+\.d\.ts))$/.test(
          path,
        ),
    ),
  ).toEqual([])
  const { exports } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  for (const entry of Object.values(exports).flatMap((one) =>
    typeof one === 'string' ? one : Object.values(one as object),
  ))
    expect(packed).toContain(String(entry).slice(2))
})

it('importing the npm package outside of a browser works and has no side effects', async () => {
  const script = `
    const { createServiceWidget } = await import('@service/widget')
    const { createServiceClient } = await import('@service/widget/client')
    const widget = createServiceWidget({ siteKey: 'pk_x', apiBaseUrl: 'https://chat.example' })
    widget.on('error', () => {})
    createServiceClient({ siteKey: 'pk_x', apiBaseUrl: 'https://chat.example' })
    console.log(widget.isOpen(), widget.messages().length)`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: project })
  expect(stdout.trim()).toBe('false 0')
})

it.each(['nodenext', 'bundler'])(
  'the types of the npm package compile with module resolution %s',
  async (resolution) => {
    await writeFile(join(project, 'consumer.ts'), consumer)
    const module = resolution === 'nodenext' ? 'nodenext' : 'esnext'
    const options = `--strict --noEmit --target es2022 --lib es2024,dom --module ${module} --moduleResolution ${resolution}`
    const checked = run(compiler, [...options.split(' '), '--types', '', 'consumer.ts'], { cwd: project })
    await expect(checked.catch((error) => error.stdout)).resolves.toMatchObject({ stdout: '' })
  },
)

it('a bundler puts languages into separate chunks, and omits the user interface if only the client is imported', async () => {
  await writeFile(
    join(project, 'page.js'),
    `import { createServiceWidget } from '@service/widget'; createServiceWidget({ siteKey: 'pk_x', apiBaseUrl: '/' }).mount()`,
  )
  await writeFile(
    join(project, 'bot.js'),
    `import { createServiceClient } from '@service/widget'; createServiceClient({ siteKey: 'pk_x', apiBaseUrl: '/' }).start()`,
  )
  const bundle = async (input: string) => {
    const outDir = join(project, `out-${input}`)
    await build({
      root: project,
      configFile: false,
      logLevel: 'error',
      build: { outDir, modulePreload: false, rolldownOptions: { input: join(project, `${input}.js`) } },
    })
    const files = await readdir(join(outDir, 'assets'))
    // Starts with the entry file. The loop adds all files that the entry file imports statically.
    const wanted = new Set([files.find((name) => name.startsWith(input))!])
    let main = ''
    for (const name of wanted) {
      const code = await readFile(join(outDir, 'assets', name), 'utf8')
      for (const [, imported] of code.matchAll(/(?:from|import)\s*["'`]\.\/([^"'`]+)/g)) wanted.add(imported!)
      main += code
    }
    return { files, main }
  }
  const page = await bundle('page')
  for (const language of widgetLocales.slice(1))
    expect(page.files.some((name) => name.startsWith(`${language}-`))).toBe(true)
  expect(page.main).toContain('attachShadow')
  const bot = await bundle('bot')
  expect(bot.main).not.toContain('attachShadow')
  expect(bot.main.length).toBeLessThan(page.main.length * 0.7)
})

it('a site serves the script tag with all its parts from the installed npm package', async () => {
  const gateway = await startScenarioServer({ heartbeatMs: 1_000 })
  const site = createServer(async ({ url = '/' }, response) => {
    response.setHeader('Content-Type', `text/${url.endsWith('.js') ? 'javascript' : 'html'}; charset=utf-8`)
    const tag = `<script src="/widget.js" data-site-key="pk_friendly" data-api-base-url="${gateway.url}" data-locale="de"></script>`
    const file = readFile(join(project, 'node_modules/@service/widget/dist', url)).catch(() => '')
    response.end(url === '/' ? `<!doctype html><title>A shop</title><body>${tag}` : await file)
  })
  const page = await (await sharedChromium()).newPage()
  atFileEnd(() => Promise.all([page.close(), gateway.close()]))
  const failed: string[] = []
  page.on('console', (message) => message.type() === 'error' && failed.push(message.text()))
  await page.goto((await listen(site)).url)
  await page.getByRole('button', { name: 'Chat öffnen' }).click()
  await page.getByRole('textbox', { name: 'Ihre Nachricht' }).fill('Versenden Sie nach Graz?')
  await page.keyboard.press('Enter')
  await page.getByText(/· Gesendet$/).waitFor()
  expect(failed.filter((text) => !text.includes('favicon'))).toEqual([])
})
