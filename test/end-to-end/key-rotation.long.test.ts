import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createClient } from '@connectrpc/connect'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { createCoreTransport } from '../../core-client/core-transport.ts'
import { createTlsFiles } from '../../platform/tls/tls-files.ts'
import { signAssertion } from '../support/assertion.ts'
import { coreCertificates } from '../support/certificates.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'
import { startTraffic } from './traffic.ts'

// This file tests two cores and two gateways with configured secrets and mutual TLS, as in production.
const root = join(import.meta.dirname, '../..')
const database = testDatabase()
const { first, second } = coreCertificates
const origin = 'https://shop.example'
const folder = mkdtempSync(join(tmpdir(), 'key-rotation-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = (name: string) => join(folder, name)
function put(name: string, content: string) {
  writeFileSync(file(`${name}.new`), content, { mode: 0o600 })
  renameSync(file(`${name}.new`), file(name))
}

const key = (kid: string) => `${kid}:${randomBytes(32).toString('base64url')}`
const [k1, k2] = [key('k1'), key('k2')]
const [operatorsOld, operatorsNew] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')]
const settings = {
  core: {
    NODE_ENV: 'production',
    LOG_LEVEL: 'warn',
    MONGODB_URI: database.uri,
    MONGODB_DATABASE: database.name,
    SECRET_KEYS: k1,
    WORKSPACE_SESSION_SECRET: operatorsOld,
    CORE_TLS_CERT: file('core.pem'),
    CORE_TLS_KEY: file('core.key'),
    CORE_TLS_CA: file('authorities.pem'),
  } as Record<string, string>,
  gateway: {
    LOG_LEVEL: 'warn',
    RATE_LIMIT_FACTOR: '1000',
    CORE_CA: file('authorities.pem'),
    CLIENT_CERT: file('client.pem'),
    CLIENT_KEY: file('client.key'),
  } as Record<string, string>,
}

interface Part {
  url: string
  running: StartedProcess
  start(): Promise<void>
}
let cores: Part[] = []
let gateways: Part[] = []
let siteKey = ''
let workspaceId = ''
let identity = { kid: '', secret: '' }

async function run(entry: string, args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, entry), ...args], {
    env: settings.core as NodeJS.ProcessEnv,
  })
  return stdout.trim()
}
const token = (...scopes: string[]) => run('core/token.ts', ['--subject', 'test', '--scopes', scopes.join(',')])

async function newPart(entry: 'core' | 'gateway'): Promise<Part> {
  const port = await freePort()
  const scheme = entry === 'core' ? 'https' : 'http'
  const part: Part = {
    url: `${scheme}://127.0.0.1:${port}`,
    running: undefined as never,
    async start() {
      const env = { ...settings[entry], [entry === 'core' ? 'CORE_PORT' : 'GATEWAY_PORT']: String(port) }
      // `fetch` does not trust the cores' certificates, so the readiness of cores is polled below.
      const ready = entry === 'gateway' ? { readyUrl: `${part.url}/readyz` } : {}
      part.running = await startProcess({ entry: `${entry}/main.ts`, name: entry, env, ...ready })
      if (entry === 'core') while (!(await isReady(part.url))) await delay(200)
    },
  }
  await part.start()
  return part
}

const transportTo = (url: string) =>
  createCoreTransport(
    url,
    createTlsFiles({ ca: file('authorities.pem'), cert: file('client.pem'), key: file('client.key') }),
  )
const isReady = (url: string) =>
  new Promise<boolean>((resolve) => {
    https
      .get(`${url}/readyz`, { ca: first.authority + second.authority, agent: false }, (response) =>
        resolve(response.resume().statusCode === 200),
      )
      .on('error', () => resolve(false))
  })

/** Restarts one process after the other with the current settings, so that another process always answers. */
async function restartInTurn(parts: Part[]) {
  for (const part of parts) {
    await part.running.stop()
    await part.start()
  }
}

const renew = async (visitor: Visitor) => {
  const { sessionId, renewalToken } = visitor.session
  const headers = { 'Idempotency-Key': randomUUID() }
  const call = () => visitor.call('POST', '/sessions/renew', { body: { sessionId, renewalToken }, headers })
  let answer = await call()
  // A core that is killed may lose the call. The client retries it.
  while (answer.status === 503) answer = await call()
  const { status, body } = answer
  expect([status, body?.code]).toEqual([200, undefined])
  visitor.session = body
}

/** Repeats a creation that busy cores did not answer in time, as clients do. */
const newVisitor = () =>
  until('a session', () =>
    startVisitor({ gatewayUrl: gateways[0]!.url, origin, siteKey }).catch((error: Error) => {
      if (!error.message.includes(' 503 ')) throw error
      return undefined
    }),
  )

/** Sends, reads and renews as each visitor several times, so that each core gets some of the calls. */
async function expectAccepted(visitors: Visitor[]) {
  for (const visitor of visitors)
    for (let round = 0; round < 4; round += 1) {
      const { status, body } = await visitor.sendUntilAccepted(`round ${round}`)
      expect([status, body?.code]).toEqual([202, undefined])
      await renew(visitor)
    }
}

async function identify(secret: typeof identity, sub = 'customer-1'): Promise<string> {
  const visitor = await startVisitor({ gatewayUrl: gateways[1]!.url, origin, siteKey })
  const { status, body } = await visitor.call('POST', '/sessions/identify', {
    body: { assertion: signAssertion({ siteKey, ...secret }, { claims: { sub } }) },
    headers: { 'Idempotency-Key': randomUUID() },
  })
  return status === 200 ? body.conversationId : body.code
}

async function listedBy(secret: string): Promise<number> {
  const session = await new SignJWT({ wid: workspaceId, scope: 'workspaces:read' })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('operator')
    .setAudience('service.workspace')
    .setExpirationTime('5m')
    .sign(new TextEncoder().encode(secret))
  const path = '/rpc/service.workspace.v1.WorkspaceService/GetWorkspace'
  const headers = { authorization: `Bearer ${session}`, 'content-type': 'application/json' }
  return (await fetch(`${gateways[1]!.url}${path}`, { method: 'POST', headers, body: '{}' })).status
}

let ada: Visitor
let stream: Awaited<ReturnType<Visitor['openStream']>>
let traffic: ReturnType<typeof startTraffic>
let administer: Awaited<ReturnType<typeof setUp>>

async function setUp() {
  const SERVICE_TOKEN = await token('workspaces:write', 'workspaces:read')
  const admin = createClient(WorkspaceService, createAuthorizedTransport(transportTo(cores[1]!.url), SERVICE_TOKEN))
  workspaceId = (await admin.createWorkspace({ name: 'Shop' })).workspace!.workspaceId
  const { connection } = await admin.createConnection({ workspaceId, name: 'Site' })
  const { connectionId } = connection!
  const { installation, identitySecret } = await admin.createInstallation({ connectionId, origins: [origin] })
  siteKey = installation!.publicSiteKey
  identity = identitySecret!
  return admin
}

beforeAll(async () => {
  put('core.pem', first.core.cert)
  put('core.key', first.core.key)
  put('client.pem', first.client.cert)
  put('client.key', first.client.key)
  put('authorities.pem', first.authority)
  cores = [await newPart('core'), await newPart('core')]
  settings.gateway.CORE_URLS = cores.map(({ url }) => url).join()
  settings.gateway.CORE_TOKEN = await token('visitors:act')
  gateways = [await newPart('gateway'), await newPart('gateway')]
  administer = await setUp()
  ada = await startVisitor({ gatewayUrl: gateways[0]!.url, origin, siteKey })
  stream = await ada.openStream({ after: 0 })
  traffic = startTraffic(ada)
  await traffic.expectMore()
})

describe('while visitors send messages', () => {
  it('certificates and their authority can be replaced without a rejected request', async () => {
    put('authorities.pem', first.authority + second.authority)
    await delay(1500)
    put('core.pem', second.core.cert)
    put('core.key', second.core.key)
    put('client.pem', second.client.cert)
    put('client.key', second.client.key)
    await delay(2500)
    put('authorities.pem', second.authority)
    await traffic.expectMore()
    await until('a call with the new certificates only', async () => (await listedBy(operatorsOld)) === 200)
    await traffic.expectMore()
  })

  it('an identity secret can be rotated without a rejected request', async () => {
    const before = identity
    const known = await identify(before)
    identity = (await administer.rotateIdentitySecret({ siteKey })).identitySecret!
    expect(await identify(before)).toBe(known)
    expect(await identify(identity)).toBe(known)
    await administer.rotateIdentitySecret({ siteKey, overlapSeconds: 0 })
    expect(await identify(before)).toBe('IdentityAssertionInvalid')
    expect(await identify(identity)).toBe(known)
    await traffic.expectMore()
  })

  it('the secret of workspace sessions can be rotated without a rejected request', async () => {
    settings.core.WORKSPACE_SESSION_SECRET = `${operatorsNew},${operatorsOld}`
    await restartInTurn(cores)
    expect([await listedBy(operatorsOld), await listedBy(operatorsNew)]).toEqual([200, 200])
    settings.core.WORKSPACE_SESSION_SECRET = operatorsNew
    await restartInTurn(cores)
    expect([await listedBy(operatorsOld), await listedBy(operatorsNew)]).toEqual([401, 200])
    await traffic.expectMore()
  })

  it('SECRET_KEYS can be rotated without a rejected request: grants, tokens and sealed secrets stay valid', async () => {
    const known = await identify(identity)
    settings.core.SECRET_KEYS = `${k2},${k1}`
    const visitors: Visitor[] = [await newVisitor()]
    // While the cores differ, each visitor of each core is accepted by both, also if the first core dies.
    for (const part of cores) {
      await part.running.stop()
      await expectAccepted(visitors)
      await part.start()
      visitors.push(await newVisitor())
      await expectAccepted(visitors)
      part.running.kill('SIGKILL')
      await part.running.exited
      await expectAccepted(visitors)
      await part.start()
      await expectAccepted(visitors)
    }
    // Each core decides for itself, and the gateway asks them in turn.
    let signed = 0
    await until('the new key to sign on each core', async () => {
      await renew(ada)
      signed = ada.session.renewalToken.startsWith('k2.') ? signed + 1 : 0
      return signed === 10
    })
    visitors.push(await newVisitor())
    await expectAccepted(visitors)
    await traffic.expectMore()
    expect(await run('core/migrate.ts', ['--rekey'])).toMatch(/Keys that no secret uses: k1$/)
    settings.gateway.CORE_TOKEN = await token('visitors:act')
    // Gateway 0 has the open stream. It restarts later, so that the stream is open for most of the test.
    await restartInTurn([gateways[1]!])
    await renew(ada)
    expect(ada.session.renewalToken).toMatch(/^k2\./)
    await traffic.expectMore()
    await restartInTurn([gateways[0]!])
    settings.core.SECRET_KEYS = k2
    visitors.splice(0, visitors.length, visitors.at(-1)!)
    for (const part of cores) {
      await part.running.stop()
      await part.start()
      visitors.push(await newVisitor())
      await expectAccepted(visitors)
    }
    await traffic.expectMore()
    expect(await identify(identity)).toBe(known)
    await renew(ada)
    await traffic.expectMore()
  })

  it('no rotation has lost or duplicated a message', async () => {
    await traffic.stop()
    expect((await ada.history()).map(({ body }) => body)).toEqual(traffic.sent)
    expect(stream.events.map(({ type }) => type)).not.toContain('session.closed')
  })
})
