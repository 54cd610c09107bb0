import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { adminHere } from '../support/admin.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { itLong } from '../support/is-long.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'

const run = promisify(execFile)
const database = testDatabase({ isNew: true })
let dataDir: string
let env: Record<string, string>
let gatewayUrl: string
let service: StartedProcess
let visitor: Visitor

const start = () =>
  startProcess({ entry: 'serve/main.ts', name: 'npm run serve', env, readyUrl: `${gatewayUrl}/readyz` })
const administer = async (...args: string[]) =>
  JSON.parse((await adminHere([...args, '--json'], { DATA_DIR: dataDir })).stdout)
const linkIn = (output: string) => /http\S+#sign-in=\S+/.exec(output)?.[0]
async function signIn(link: string): Promise<number> {
  const { origin, hash } = new URL(link)
  const answer = await fetch(`${gatewayUrl}/console/session/sign-in`, {
    method: 'POST',
    headers: { origin, 'x-service-console': '1', 'content-type': 'application/json' },
    body: JSON.stringify({ link: hash.slice('#sign-in='.length), displayName: 'Ada' }),
  })
  return answer.status
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'service-serve-'))
  atFileEnd(() => rm(dataDir, { recursive: true, force: true }))
  const [GATEWAY_PORT, CORE_PORT, METRICS_PORT] = [await freePort(), await freePort(), await freePort()].map(String)
  env = {
    NODE_ENV: 'production',
    MONGODB_URI: database.uri,
    MONGODB_DATABASE: database.name,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    GATEWAY_PORT: GATEWAY_PORT!,
    CORE_PORT: CORE_PORT!,
    METRICS_PORT: METRICS_PORT!,
  }
  await buildConsoleIfStale()
  gatewayUrl = `http://localhost:${GATEWAY_PORT}`
  service = await start()
})

describe('npm run serve', () => {
  it('migrates an empty database and prints a link that signs the first owner in, once', async () => {
    const link = await until('the link', () => linkIn(service.output()))
    expect([await signIn(link), await signIn(link)]).toEqual([200, 401])
    expect(await administer('workspaces', 'list')).toMatchObject({ workspaces: [{ name: 'localhost' }] })
    const { link: another } = await administer('console-link')
    expect(await signIn(another)).toBe(200)
  })

  it('creates no demo, and only files that no other user can read', async () => {
    const names = await readdir(dataDir)
    expect(names.toSorted()).toEqual(['admin.json', 'secrets.json'])
    for (const name of names) expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o600)
    const { secretKeys, workspaceSessionSecret } = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8'))
    for (const secret of [secretKeys, workspaceSessionSecret]) expect(service.output()).not.toContain(secret)
  })

  it('listens on this machine only, and has the health checks and metrics of all parts', async () => {
    for (const port of [env.GATEWAY_PORT, env.CORE_PORT])
      for (const path of ['/livez', '/readyz'])
        expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200)
    const metrics = await (await fetch(`http://127.0.0.1:${env.METRICS_PORT}/metrics`)).text()
    for (const part of ['gateway', 'core', 'delivery']) expect(metrics).toContain(`\nservice_${part}_`)
    const { stdout } = await run('ss', ['-Hltn'])
    for (const port of [env.GATEWAY_PORT, env.CORE_PORT, env.METRICS_PORT])
      expect(stdout.split('\n').filter((line) => line.includes(`:${port} `))).toEqual([
        expect.stringContaining('127.0.0.1:'),
      ])
  })

  it('carries a message, and drains on SIGTERM', async () => {
    const origin = 'https://shop.example'
    const [{ workspaceId }] = (await administer('workspaces', 'list')).workspaces
    const { connection } = await administer('connections', 'create', '--workspace', workspaceId, '--name', 'Website')
    const site = ['--connection', connection.connectionId, '--origin', origin]
    const { installation } = await administer('installations', 'create', ...site)
    visitor = await startVisitor({ gatewayUrl, origin, siteKey: installation.publicSiteKey })
    const stream = await visitor.openStream()
    expect((await visitor.send('Hello')).status).toBe(202)
    await until('the event', () => stream.events.length === 1)
    service.kill('SIGTERM')
    expect(await service.exited).toEqual({ code: 0, signal: null })
    await stream.ended
    expect(service.output()).not.toMatch(/ {4}at |"level":50/)
  })

  itLong('starts again with the same secrets and without a link', async () => {
    service = await start()
    expect(linkIn(service.output())).toBeUndefined()
    expect((await visitor.send('Still me')).body.sequence).toBe(2)
    await service.stop()
    expect(service.output()).not.toMatch(/ {4}at |"level":50/)
  })
})
