import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type http2 from 'node:http2'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { createCoreTransport } from '../core-client/core-transport.ts'
import { createTlsFiles } from '../platform/tls/tls-files.ts'
import { coreCertificates } from '../test/support/certificates.ts'
import { testDatabase } from '../test/support/test-database.ts'
import { until } from '../test/support/until.ts'
import { readCoreConfig } from './config.ts'
import { createCore, type RunningCore } from './context.ts'
import { type CoreServer, serveCore } from './server.ts'
import { openTestDatabase } from './test/open-test-database.ts'
import { accessOf } from './transport/caller.ts'

const { first, second } = coreCertificates
const { uri, name } = testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'tls-test-'))
const files = {
  cert: join(folder, 'core.pem'),
  key: join(folder, 'core.key'),
  ca: join(folder, 'authorities.pem'),
}
let core: RunningCore
let server: CoreServer
let baseUrl: string
let headers: Record<string, string>

/** Replaces a file atomically, like tools that renew certificates. */
function put(file: keyof typeof files, content: string) {
  writeFileSync(`${files[file]}.new`, content)
  renameSync(`${files[file]}.new`, files[file])
}

beforeAll(async () => {
  put('cert', first.core.cert)
  put('key', first.core.key)
  put('ca', first.authority)
  core = createCore({
    config: readCoreConfig({}),
    secretKeys: [{ kid: 'k1', secret: new Uint8Array(32).fill(7) }],
    database: await openTestDatabase({ uri, name }),
    logger: pino({ level: 'silent' }),
  })
  core.start()
  const tls = { files: createTlsFiles(files), asksClients: true }
  server = await serveCore(core, { host: '127.0.0.1', port: 0, tls })
  baseUrl = `https://127.0.0.1:${server.port}`
  const token = await accessOf(core).issue({ subject: 'test', scopes: ['visitors:act'] })
  headers = { authorization: `Bearer ${token}` }
})
afterAll(async () => {
  await server.close()
  await core.stop()
  rmSync(folder, { recursive: true, force: true })
})

const both = first.authority + second.authority
const accepted = { ca: both, ...first.client }
const ask = (transport: Transport) =>
  createClient(SessionService, transport)
    .checkOrigin({ origin: 'https://nobody.example' }, { headers })
    .then(({ allowed }) => String(allowed))
    .catch((error: unknown) => Code[ConnectError.from(error).code])
/** Creates a transport as gateways, workers and cores use it. */
const serviceClient = (current: () => object, url = baseUrl) =>
  createCoreTransport(url, {
    current: () => Object.fromEntries(Object.entries(current()).map(([name, text]) => [name, Buffer.from(text)])),
  })
const over = (nodeOptions: http2.SecureClientSessionOptions, url = baseUrl) =>
  createConnectTransport({ baseUrl: url, httpVersion: '2', nodeOptions })

/** Returns the issuer of the server's certificate on a new connection. */
function issuerOf(material: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = https.get(`${baseUrl}/livez`, { ...material, agent: false }, (response) => {
      response.resume()
      resolve(String((response.socket as TLSSocket).getPeerCertificate().issuer.CN))
    })
    request.on('error', reject)
  })
}

const statusOf = (path: string) =>
  new Promise((resolve, reject) => {
    https
      .get(`${baseUrl}${path}`, { ca: both, agent: false }, (response) => resolve(response.resume().statusCode))
      .on('error', reject)
  })

describe('a core with certificates', () => {
  it.each<[string, () => Transport]>([
    ['Connect over HTTP/2', () => over(accepted)],
    ['Connect over HTTP/1.1', () => createConnectTransport({ baseUrl, httpVersion: '1.1', nodeOptions: accepted })],
    ['gRPC', () => createGrpcTransport({ baseUrl, nodeOptions: accepted })],
    ['a client of the service', () => serviceClient(() => accepted)],
  ])('serves %s to a caller with an accepted certificate', async (_, transport) => {
    expect(await ask(transport())).toBe('false')
  })

  it.each<[string, http2.SecureClientSessionOptions]>([
    ['no certificate', { ca: both }],
    ['a certificate of another authority', { ca: both, ...second.client }],
    ['a server certificate', { ca: both, ...first.core }],
  ])('rejects a caller with a valid token and %s', async (_, material) => {
    expect(await ask(over(material))).toBe('PermissionDenied')
    expect(await ask(serviceClient(() => material))).toBe('PermissionDenied')
  })

  it('accepts a client of the service after the files of the client’s certificate have changed', async () => {
    let material = { ca: both, ...second.client }
    const transport = serviceClient(() => material)
    expect(await ask(transport)).toBe('PermissionDenied')
    material = accepted
    expect(await ask(transport)).toBe('false')
  })

  it('is unreachable for a caller that does not use TLS or does not trust the core’s certificate authority', async () => {
    expect(await ask(over({ ca: second.authority, ...first.client }))).not.toBe('false')
    expect(await ask(over({}, baseUrl.replace('https', 'http')))).not.toBe('false')
    const distrusting = { ca: second.authority, ...first.client }
    expect(await ask(serviceClient(() => distrusting))).toBe('Unavailable')
    expect(await ask(createCoreTransport(baseUrl.replace('https', 'http')))).toBe('Unavailable')
  })

  it('responds to probes without a certificate', async () => {
    expect([await statusOf('/livez'), await statusOf('/readyz'), await statusOf('/nothing')]).toEqual([200, 200, 403])
  })

  it('reloads its certificates and authorities without ending open calls', async () => {
    const transport = over(accepted)
    const open = new AbortController()
    async function* commands() {
      await new Promise((resolve) => open.signal.addEventListener('abort', resolve))
      yield* []
    }
    const frames = createClient(MessagingService, transport)
      .watchEvents(commands(), { headers, signal: open.signal })
      [Symbol.asyncIterator]()
    await frames.next()
    let ended = false
    void frames.next().then(
      () => {},
      () => {
        ended = true
      },
    )
    expect(await issuerOf(accepted)).toBe('Test first core authority')

    put('ca', both)
    put('cert', second.core.cert)
    put('key', second.core.key)
    await until('the new certificate', async () => (await issuerOf(accepted)) === 'Test second core authority')
    expect(await ask(over({ ca: both, ...second.client }))).toBe('false')
    expect(await ask(over(accepted))).toBe('false')

    put('ca', second.authority)
    await until('the old authority is gone', async () => (await ask(over(accepted))) === 'PermissionDenied')
    expect(await ask(over({ ca: both, ...second.client }))).toBe('false')
    expect(ended).toBe(false)
    open.abort()
  })
})
