import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { adminHere } from '../support/admin.ts'
import { isLong, itLong } from '../support/is-long.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
let dataDir: string
let ports: { GATEWAY_PORT: string; CORE_PORT: string; DEMO_PORT: string; METRICS_PORT: string }
let service: StartedProcess
const itWithCurl = it.runIf(isLong && existsSync('/usr/bin/curl'))

async function start(env: Record<string, string> = {}): Promise<StartedProcess> {
  const readyUrl = `http://127.0.0.1:${ports.DEMO_PORT}/`
  return startProcess({
    entry: 'dev/start.ts',
    name: 'npm start',
    env: {
      DATA_DIR: dataDir,
      LOG_LEVEL: 'warn',
      RATE_LIMIT_FACTOR: '100',
      DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32',
      ...ports,
      ...env,
    },
    readyUrl,
  })
}

const demoFile = async (): Promise<DemoFile> => JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))

/** Runs the document's shell blocks whose first line is a comment. Returns the output of the blocks. */
async function runCommandsOf(document: string, change = (text: string) => text): Promise<string> {
  const text = await readFile(join(root, document), 'utf8')
  const blocks = [...text.matchAll(/```sh\n(#[^\n]*\n[\s\S]*?)```/g)].map(([, block = '']) => change(block))
  expect(blocks.length).toBeGreaterThan(1)
  const here = (block: string) =>
    block
      .replaceAll('localhost:8080', `localhost:${ports.GATEWAY_PORT}`)
      .replaceAll('localhost:8081', `localhost:${ports.DEMO_PORT}`)
      .replaceAll('localhost:8090', `localhost:${ports.CORE_PORT}`)
      .replaceAll('.data/', `${dataDir}/`)
  // All blocks run in one shell, because later commands use variables of earlier blocks.
  return (await run('bash', ['-euo', 'pipefail', '-c', blocks.map(here).join('\n')], { cwd: root })).stdout
}

async function newVisitor() {
  const { gatewayUrl, origin, siteKey } = await demoFile()
  return startVisitor({ gatewayUrl, origin, siteKey })
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'service-start-'))
  const [GATEWAY_PORT, CORE_PORT, DEMO_PORT, METRICS_PORT] = [
    String(await freePort()),
    String(await freePort()),
    String(await freePort()),
    String(await freePort()),
  ]
  ports = { GATEWAY_PORT, CORE_PORT, DEMO_PORT, METRICS_PORT }
  service = await start()
})
afterAll(() => rm(dataDir, { recursive: true, force: true }))

describe('npm start', () => {
  it('writes demo.json and credentials with file mode 600', async () => {
    const demo = await demoFile()
    expect(demo).toEqual({
      gatewayUrl: `http://localhost:${ports.GATEWAY_PORT}`,
      coreUrl: `http://localhost:${ports.CORE_PORT}`,
      siteKey: 'pk_demo',
      origin: `http://localhost:${ports.DEMO_PORT}`,
      workspaceId: 'ws_demo',
      serviceToken: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      workspaceSession: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      identity: { kid: 'demo', secret: expect.stringMatching(/^[\w-]{43}$/) },
      mongodbUri: expect.stringMatching(/^mongodb:\/\//),
    })
    for (const name of ['demo.json', 'secrets.json', 'agent.curl', 'workspace.curl']) {
      expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o600)
    }
  })

  it('serves the metrics of gateway, core and delivery worker on one port', async () => {
    const text = await (await fetch(`http://127.0.0.1:${ports.METRICS_PORT}/metrics`)).text()
    for (const part of ['gateway', 'core', 'delivery']) expect(text).toContain(`\nservice_${part}_`)
  })

  it('prints every URL and no secret', async () => {
    const { gatewayUrl, coreUrl, origin, serviceToken, identity } = await demoFile()
    await until('the URLs', () => [gatewayUrl, coreUrl, origin].every((url) => service.output().includes(url)))
    for (const secret of [serviceToken, identity.secret]) expect(service.output()).not.toContain(secret)
  })

  itWithCurl('prints a command that sends an agent’s message to the latest conversation', async () => {
    const visitor = await newVisitor()
    await visitor.send('Is anybody there?')
    const line = service
      .output()
      .split('\n')
      .find((text) => text.includes('SendAgentMessage'))
    await run('bash', ['-c', line ?? 'false'], { cwd: root })
    expect((await visitor.history()).map(({ body, author }) => [author.kind, body])).toEqual([
      ['visitor', 'Is anybody there?'],
      ['agent', 'Hello, how can I help?'],
    ])
  })

  it('prints the console URL and a link that signs in once, and the administration command creates another link', async () => {
    const lines = service.output().split('\n')
    expect(lines.find((text) => text.includes('Console'))).toContain(`localhost:${ports.GATEWAY_PORT}/console/`)
    const signIn = async (link: string) => {
      const { origin, hash } = new URL(link)
      const answer = await fetch(`${origin}/console/session/sign-in`, {
        method: 'POST',
        headers: { origin, 'x-service-console': '1', 'content-type': 'application/json' },
        body: JSON.stringify({ link: hash.slice('#sign-in='.length), displayName: 'Ada' }),
      })
      return answer.status
    }
    const link = lines.find((text) => text.includes('#sign-in='))?.trim() ?? ''
    expect([await signIn(link), await signIn(link)]).toEqual([200, 401])
    const { stdout } = await adminHere(['console-link'], { DATA_DIR: dataDir })
    expect(await signIn(/http\S+/.exec(stdout)![0])).toBe(200)
    expect(service.output()).not.toContain((await demoFile()).workspaceSession)
  })

  itWithCurl('runs the commands of docs/integrating.md as printed', async () => {
    // A busy machine needs longer for the events.
    const stdout = await runCommandsOf('docs/integrating.md', (text) => text.replace('--max-time 2', '--max-time 9'))
    expect(stdout).toContain('"capabilities"')
    expect(stdout).toContain('"state":"queued"')
    expect(stdout).toContain('"author":{"kind":"agent","displayName":"Ada"}')
    expect(stdout).toContain('event: message.received')
  })

  itWithCurl('runs the commands of docs/leads.md as printed', async () => {
    // Replaces the destination by a closed local port, so that no public server is called.
    const here = `http://127.0.0.1:${await freePort()}/leads`
    const stdout = await runCommandsOf('docs/leads.md', (text) => text.replace('https://example.com/leads', here))
    const [created = '', retried = ''] = stdout.replaceAll('}{', '}\n{').split('\n')
    expect(JSON.parse(created)).toMatchObject({ attemptNumber: 1, attemptId: expect.stringMatching(/^att_/) })
    expect(['AttemptNotRetryable', undefined]).toContain(JSON.parse(retried).code)
  })

  itLong('stops its database engine on Ctrl-C and keeps all data for the next start', async () => {
    const visitor = await newVisitor()
    await visitor.send('Keep this')
    const before = await visitor.history()
    const { mongodbUri } = await demoFile()

    service.kill('SIGINT')
    expect(await service.exited).toEqual({ code: 0, signal: null })
    expect(existsSync(decodeURIComponent(new URL(mongodbUri).host))).toBe(false)

    service = await start()
    expect(await visitor.history()).toEqual(before)
    expect((await visitor.send('And this')).body.sequence).toBe(2)
  })

  const invalid: [setting: string, value: string][] = [
    ['CORE_PORT', '70000'],
    ['GATEWAY_PORT', 'eighty'],
    ['DEMO_PORT', '-1'],
    ['LOG_LEVEL', 'chatty'],
    ['GRANT_LIFETIME_SECONDS', '-7'],
  ]
  itLong.each(invalid)('does not start with an invalid %s, and prints the allowed values', async (setting, value) => {
    const env = { ...ports, DATA_DIR: join(dataDir, 'other'), [setting]: value }
    const failed = await startProcess({ entry: 'dev/start.ts', name: 'npm start', env })
    expect(await failed.exited).toEqual({ code: 2, signal: null })
    expect(failed.output()).toContain(`${setting} must be`)
    expect(failed.output()).not.toContain(value)
  })
})

describe('core and gateway started separately', () => {
  itLong('find each other in a new data folder, even if the gateway starts first', async () => {
    const folder = join(dataDir, 'apart')
    const [corePort, gatewayPort] = [await freePort(), await freePort()]
    const env = { DATA_DIR: folder, LOG_LEVEL: 'warn', CORE_PORT: `${corePort}`, GATEWAY_PORT: `${gatewayPort}` }
    const gateway = startProcess({
      entry: 'gateway/main.ts',
      name: 'gateway',
      env: { ...env, CORE_URLS: `http://localhost:${corePort}` },
      readyUrl: `http://127.0.0.1:${gatewayPort}/readyz`,
    })
    await startProcess({ entry: 'dev/core.ts', name: 'core', env, readyUrl: `http://127.0.0.1:${corePort}/readyz` })
    await gateway
    const { siteKey, origin } = JSON.parse(await readFile(join(folder, 'demo.json'), 'utf8')) as DemoFile
    const visitor = await startVisitor({ gatewayUrl: `http://127.0.0.1:${gatewayPort}`, origin, siteKey })
    expect((await visitor.send('Hello')).status).toBe(202)
  })
})
