import { execFile, spawn } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { enginePlace } from '../../dev/engine/engine-place.ts'
import { packWidget } from '../../dev/make/pack.ts'
import { sharedChromium } from '../support/chromium.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { type FaultyProxy, startFaultyProxy } from '../support/faulty-proxy.ts'
import { operatorOf } from '../support/operator.ts'
import { freePort, inheritedEnvironment, type StartedProcess, startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'
import { lastVersion, unpack } from '../upgrade/versions.ts'
import { canRunContainers, openContainers } from './containers.ts'
import { root } from './dockerfile.ts'
import { makeSecrets } from './secrets.ts'

const run = promisify(execFile)
const canRun = await canRunContainers()
if (!canRun) console.log('Skipped: `apt-get install buildah debootstrap`, and run this as root.')
const release = await lastVersion()
if (release === undefined) console.log('There is no release yet: the deployment begins with this version.')
const say = (line: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`)

it.skipIf(!canRun)(
  'a newcomer installs the packed widget, runs the images, upgrades, and restores a backup',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'service-newcomer-'))
    atFileEnd(() => rm(folder, { recursive: true, force: true }))
    const [containers, secrets] = [await openContainers(), await makeSecrets()]
    atFileEnd(() => containers.remove())
    let first = ''
    if (release !== undefined) {
      const old = await unpack(release)
      atFileEnd(old.remove)
      first = '-old'
      for (const target of ['core', 'gateway', 'delivery'])
        await containers.build(target, { root: old.root, suffix: first })
      say(`built the images of ${release}`)
    }
    await containers.build('service')
    say('built the image of this version')

    const ports = { cores: [await freePort(), await freePort()], gateway: await freePort(), delivery: await freePort() }
    const coreUrls = ports.cores.map((port) => `http://localhost:${port}`)
    const gatewayUrl = `http://127.0.0.1:${ports.gateway}`
    const running = new Map<string, StartedProcess>()
    let engine: { holder: StartedProcess; proxy: FaultyProxy }
    const coreEnvironment = async () => ({
      ...(await secrets.read('core.env')),
      MONGODB_URI: `mongodb://127.0.0.1:${engine.proxy.port}/?directConnection=true`,
      MIGRATE_AT_START: 'off',
    })

    async function startEngine(dataDir: string) {
      const holder = await startProcess({ entry: 'test/support/engine-holder.ts', name: 'engine', args: [dataDir] })
      await until('the engine', () => holder.output().includes('attached to the database engine'))
      engine = { holder, proxy: await startFaultyProxy(enginePlace(dataDir).socketPath) }
    }

    async function stopEngine() {
      await engine.proxy.close()
      await engine.holder.stop()
    }

    /** Stops a process and starts it again from the image of the given version. */
    async function replace(name: string, version: string) {
      await running.get(name)?.stop()
      const [part = '', number = '1'] = name.split(' ')
      const port = part === 'core' ? ports.cores[Number(number) - 1]! : ports[part as 'gateway' | 'delivery']
      const env = {
        ...(await secrets.read(`${part}.env`)),
        ...(part === 'core' ? await coreEnvironment() : { CORE_URLS: coreUrls.join() }),
        [`${part.toUpperCase()}_PORT`]: String(port),
        METRICS_PORT: '0',
        ...(part === 'gateway' && { TRUST_PROXY: '1', RATE_LIMIT_FACTOR: '100' }),
      }
      running.set(
        name,
        await (version === ''
          ? containers.start('service', env, port, [part])
          : containers.start(`${part}${version}`, env, port)),
      )
      await until(`${name} to be ready`, () => isOk(`http://127.0.0.1:${port}/readyz`))
      say(`started ${name}${version === '' ? '' : ' of the old version'}`)
    }
    const migrate = (version: string, ...args: string[]) =>
      coreEnvironment().then((env) =>
        version === ''
          ? containers.run('service', env, { args: ['migrate', ...args] })
          : containers.run(`core${version}`, env, { args: ['node', 'core/migrate.ts', ...args] }),
      )
    const parts = ['core 1', 'core 2', 'delivery', 'gateway']
    const stopParts = async () => {
      for (const name of parts.toReversed()) await running.get(name)!.stop()
      running.clear()
    }

    await startEngine(join(folder, 'data'))
    await migrate(first)
    for (const name of parts) await replace(name, first)

    const pagePort = await freePort()
    const origin = `http://127.0.0.1:${pagePort}`
    const token = (await secrets.read('operator.env')).SERVICE_TOKEN!
    const administer = async (...args: string[]) =>
      JSON.parse(
        (
          await containers.run(
            'service',
            { SERVICE_TOKEN: token, CORE_URL: coreUrls[0]! },
            { args: ['admin', ...args, '--json'] },
          )
        ).stdout,
      )
    const { workspaceId } = (await administer('workspaces', 'create', '--name', 'Shop')).workspace
    const { connection } = await administer('connections', 'create', '--workspace', workspaceId, '--name', 'Site')
    const site = ['--connection', connection.connectionId, '--origin', origin]
    const siteKey: string = (await administer('installations', 'create', ...site)).installation.publicSiteKey
    say('made a workspace and a site')

    const project = join(folder, 'shop')
    await cp(join(root, 'test/packages/fixtures/vite'), project, { recursive: true })
    const inherited = inheritedEnvironment()
    const path = `${dirname(process.execPath)}:${inherited.PATH}`
    const env = { ...inherited, PATH: path, VITE_SITE_KEY: siteKey, VITE_API_BASE_URL: gatewayUrl }
    await run('npm', ['install', '--no-audit', '--no-fund', await packWidget(folder)], { cwd: project })
    await run('npm', ['run', 'build'], { cwd: project, env })
    const shop = spawn('npm', ['run', 'serve', '--', '--port', String(pagePort)], { cwd: project, env, detached: true })
    atFileEnd(() => process.kill(-shop.pid!, 'SIGTERM'))
    await until('the page', () => isOk(origin), 200)
    say('built the page with the packed widget')

    const page = await (await (await sharedChromium()).newContext({ locale: 'en-GB' })).newPage()
    page.setDefaultTimeout(120_000)
    await page.goto(origin)
    await page.getByRole('button', { name: /^Open chat/ }).click()
    const operators = coreUrls.map((url) => operatorOf(url, token))
    async function talk(text: string) {
      await page.getByRole('textbox', { name: 'Your message' }).fill(text)
      await page.keyboard.press('Enter')
      await page
        .getByText(/· Sent$/)
        .last()
        .waitFor()
      const conversationId = await until('the conversation', () => conversationOf(text), 200)
      await operators[1]!.messaging.sendAgentMessage({
        conversationId,
        clientOperationId: text,
        body: `About “${text}”`,
      })
      await page.getByText(`About “${text}”`).waitFor()
    }
    async function conversationOf(text: string): Promise<string | undefined> {
      const { conversations } = await operators[0]!.messaging.listConversations({ workspaceId, limit: 10 })
      return conversations.find(({ lastMessage }) => lastMessage?.body === text)?.conversationId
    }
    await talk('before')
    say('the visitor of the page and an agent talked')

    const writer = await startVisitor({ gatewayUrl, origin, siteKey })
    const accepted: string[] = []
    const ending = new AbortController()
    const writing = write(writer, accepted, ending.signal)
    await migrate('')
    for (const name of parts) await replace(name, '')
    ending.abort()
    await writing
    await migrate('', '--contract')
    const stored = (await writer.history()).map(({ messageId }) => messageId)
    expect(stored).toEqual(accepted)
    expect(accepted.length).toBeGreaterThan(50)
    await talk('upgraded')
    say(`upgraded under traffic: ${accepted.length} messages acknowledged, all stored once, none refused`)

    await stopParts()
    await stopEngine()
    const backup = join(folder, 'service.backup')
    const inData = (data: string) => ({ env: { ...inherited, DATA_DIR: join(folder, data), LOG_LEVEL: 'warn' } })
    await run(process.execPath, [join(root, 'dev/backup.ts'), 'backup', backup], inData('data'))
    await rm(join(folder, 'data'), { recursive: true })
    await run(process.execPath, [join(root, 'dev/backup.ts'), 'restore', backup], inData('restored'))
    await startEngine(join(folder, 'restored'))
    for (const name of parts) await replace(name, '')
    expect((await writer.history()).map(({ messageId }) => messageId)).toEqual(accepted)
    say('restored from the backup: every acknowledged message is there')
    // The chat was open, so it opens automatically on the new page, without a click on the launcher.
    await page.reload()
    await page.getByText('About “upgraded”').waitFor()
    await talk('restored')
    say('the visitor of the page sees the history and talks with an agent on the restored deployment')
    await stopParts()
    await stopEngine()
  },
)

/**
 * Sends one message after another until the signal aborts. Retries each message until it is
 * accepted. Fails if the service rejects a message permanently.
 */
async function write(visitor: Visitor, accepted: string[], signal: AbortSignal) {
  for (let count = 1; !signal.aborted; count += 1) {
    const { status, body } = await visitor.sendUntilAccepted(`message ${count}`)
    expect([status, body?.code]).toEqual([202, undefined])
    accepted.push(body.messageId)
    await delay(50)
  }
}

const isOk = (url: string) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
