import { once } from 'node:events'
import { connect } from 'node:http2'
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { itLong } from '../test/support/is-long.ts'
import { damaged } from '../test/support/nasty-values.ts'
import { testDatabase } from '../test/support/test-database.ts'
import { readCoreConfig } from './config.ts'
import { createCore, type RunningCore } from './context.ts'
import { openDatabase } from './database/database.ts'
import { type CoreServer, inMemoryTransport, listenForCore, serveCore } from './server.ts'
import { sessionStoreOf } from './sessions/session-store.ts'
import { openTestDatabase } from './test/open-test-database.ts'
import { accessOf } from './transport/caller.ts'
import { createSession } from './visitors/sessions.ts'
import { createConnection, createInstallation, createWorkspace } from './workspaces/workspaces.ts'

const { uri, name } = testDatabase({ isNew: true })
let core: RunningCore
let server: CoreServer
let baseUrl: string

beforeAll(async () => {
  core = createCore({
    config: readCoreConfig({}),
    secretKeys: [{ kid: 'k1', secret: new Uint8Array(32).fill(7) }],
    database: await openTestDatabase({ uri, name }),
    logger: pino({ level: 'silent' }),
  })
  core.start()
  server = await serveCore(core, { host: '127.0.0.1', port: 0 })
  baseUrl = `http://127.0.0.1:${server.port}`
})
afterAll(async () => {
  await server.close()
  await core.stop()
})

const token = (...scopes: string[]) => accessOf(core).issue({ subject: 'test', scopes })

async function codeOf(call: Promise<unknown>): Promise<[Code, string | undefined]> {
  const error = ConnectError.from(
    await call.then(
      () => 'no error',
      (failure) => failure,
    ),
  )
  return [error.code, error.findDetails(ErrorInfoSchema)[0]?.code]
}

describe('the internal services', () => {
  it.each<[string, () => Transport]>([
    ['Connect over HTTP/1.1', () => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
    ['Connect over HTTP/2', () => createConnectTransport({ baseUrl, httpVersion: '2' })],
    ['Connect with JSON', () => createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat: false })],
    ['gRPC', () => createGrpcTransport({ baseUrl })],
    ['gRPC-Web', () => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
    ['memory', () => inMemoryTransport(core)],
  ])('respond over %s on one port, with a code and details for an error', async (_, transport) => {
    const client = createClient(SessionService, transport())
    const headers = { authorization: `Bearer ${await token('visitors:act', 'sessions:read')}` }
    expect(await client.checkOrigin({ origin: 'https://nobody.example' }, { headers })).toMatchObject({
      allowed: false,
    })
    expect(await codeOf(client.getSession({ sessionId: 'ses_none' }, { headers }))).toEqual([Code.NotFound, 'NotFound'])
  })

  it('send the first frame of a gateway’s stream at once', async () => {
    const client = createClient(MessagingService, createConnectTransport({ baseUrl, httpVersion: '2' }))
    const headers = { authorization: `Bearer ${await token('visitors:act')}` }
    const open = new AbortController()
    async function* commands() {
      await new Promise((resolve) => open.signal.addEventListener('abort', resolve))
      yield* []
    }
    const stream = client.watchEvents(commands(), { headers, signal: open.signal })
    const { value } = await stream[Symbol.asyncIterator]().next()
    expect(value?.frames[0]?.frame.case).toBe('ready')
    open.abort()
  })

  const subscribe = { case: 'subscribe' as const, value: { subscriptionId: 7 } }
  it('answer a subscription that a gateway requests in its WatchEvents call', async () => {
    const client = createClient(MessagingService, createConnectTransport({ baseUrl, httpVersion: '2' }))
    const headers = { authorization: `Bearer ${await token('visitors:act')}` }
    const open = new AbortController()
    async function* messages() {
      yield { commands: [{ command: subscribe }] }
      await new Promise((resolve) => open.signal.addEventListener('abort', resolve))
    }
    const frames = []
    for await (const answer of client.watchEvents(messages(), { headers, signal: open.signal })) {
      frames.push(...answer.frames.map(({ frame }) => frame))
      if (frames.length > 1) break
    }
    expect(frames).toMatchObject([
      { case: 'ready' },
      { case: 'closed', value: { subscriptionId: 7, error: { code: 'GrantMissing' } } },
    ])
    open.abort()
  })

  it.each(['application/grpc-web+json', 'application/grpc+json'])(
    'reset the HTTP/2 stream of a call whose response cannot be written (%s)',
    async (type) => {
      // The message of the error is sent in a header, which cannot contain this lone surrogate.
      const find = () => Promise.reject(new ConnectError('\udfff', Code.Internal))
      const store = sessionStoreOf(core)
      sessionStoreOf.set(core, { ...store, find })
      const other = await serveCore(core, { host: '127.0.0.1', port: 0 })
      const session = connect(`http://127.0.0.1:${other.port}`)
      const call = session.request({
        ':method': 'POST',
        ':path': '/service.session.v1.SessionService/GetSession',
        'content-type': type,
        authorization: `Bearer ${await token('sessions:read')}`,
      })
      const message = Buffer.from('{}')
      call.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]))
      await expect(once(call, 'close')).rejects.toThrow('NGHTTP2_INTERNAL_ERROR')
      session.close()
      await other.close()
      sessionStoreOf.set(core, store)
    },
  )

  it('respond to liveness and readiness probes', async () => {
    expect((await fetch(`${baseUrl}/livez`)).status).toBe(200)
    expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200)
    expect((await fetch(`${baseUrl}/nothing`)).status).toBe(404)
  })
})

it('a core that starts closes connections after each answer, so that gateways send it no calls yet', async () => {
  const starting = await listenForCore({ host: '127.0.0.1', port: 0 })
  const probe = async (path: string) => {
    const { status, headers } = await fetch(`http://127.0.0.1:${starting.port}${path}`)
    return [status, headers.get('connection')]
  }
  expect(await probe('/livez')).toEqual([200, 'close'])
  expect(await probe('/readyz')).toEqual([503, 'close'])
  starting.serve(core)
  expect(await probe('/livez')).toEqual([200, 'keep-alive'])
  await starting.close()
})

it('a stopping core finishes the running call and rejects new connections', async () => {
  const underWay = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const store = sessionStoreOf(core)
  sessionStoreOf.set(core, {
    ...store,
    async find(...given) {
      underWay.resolve()
      await held.promise
      return store.find(...given)
    },
  })
  const stopping = await serveCore(core, { host: '127.0.0.1', port: 0 })
  const address = `http://127.0.0.1:${stopping.port}`
  const authorization = `Bearer ${await token('sessions:read')}`
  const client = createClient(SessionService, createConnectTransport({ baseUrl: address, httpVersion: '2' }))
  const asked = codeOf(client.getSession({ sessionId: 'ses_none' }, { headers: { authorization } }))
  await underWay.promise
  const closed = stopping.close()
  await expect(fetch(`${address}/livez`)).rejects.toThrow()
  held.resolve()
  expect((await asked)[0]).toBe(Code.NotFound)
  await closed
  sessionStoreOf.set(core, store)
})

describe('a caller', () => {
  it.each([
    ['no token', async () => undefined, Code.Unauthenticated, 'Unauthenticated'],
    ['another scheme', async () => 'Basic dXNlcjpwYXNz', Code.Unauthenticated, 'Unauthenticated'],
    ['a malformed token', async () => 'Bearer a.b.c', Code.Unauthenticated, 'Unauthenticated'],
    [
      'a token of another key',
      async () => `Bearer ${damaged(await token('sessions:read'))}`,
      Code.Unauthenticated,
      'Unauthenticated',
    ],
    [
      'a token without the scope',
      async () => `Bearer ${await token('messages:read')}`,
      Code.PermissionDenied,
      'PermissionDenied',
    ],
    [
      'a token with a longer scope of the same prefix',
      async () => `Bearer ${await token('sessions:readonly')}`,
      Code.PermissionDenied,
      'PermissionDenied',
    ],
    [
      'an expired token',
      async () => `Bearer ${await accessOf(core).issue({ subject: 'test', scopes: ['sessions:read'], lifetime: -1 })}`,
      Code.Unauthenticated,
      'Unauthenticated',
    ],
  ])('is rejected with %s', async (_, authorization, code, publicCode) => {
    const client = createClient(SessionService, createConnectTransport({ baseUrl, httpVersion: '2' }))
    const value = await authorization()
    const headers: Record<string, string> = value === undefined ? {} : { authorization: value }
    expect(await codeOf(client.getSession({ sessionId: 'ses_1' }, { headers }))).toEqual([code, publicCode])
  })

  it.each([
    ['application/proto', 'service.session.v1.SessionService/GetSession'],
    ['application/json', 'service.session.v1.SessionService/GetSession'],
    ['application/connect+proto', 'service.messaging.v1.MessagingService/WatchConversations'],
  ])('is rejected without a token before its request body is parsed (%s)', async (type, path) => {
    const answer = await fetch(`${baseUrl}/${path}`, {
      method: 'POST',
      headers: { 'content-type': type },
      body: Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]),
    })
    expect(await answer.text()).toContain('"code":"unauthenticated"')
  })

  it('gets NotFound for data of another workspace if its token is limited to one workspace', async () => {
    const mine = await createWorkspace(core, 'Mine')
    const theirs = await createWorkspace(core, 'Theirs')
    const { connectionId } = await createConnection(core, theirs.workspaceId, 'Site', undefined)
    const { installation } = await createInstallation(
      core,
      connectionId,
      { origins: ['https://theirs.example'] },
      undefined,
    )
    const { content } = await createSession(core, {
      publicSiteKey: installation.publicSiteKey,
      origin: 'https://theirs.example',
      clientInstanceId: 'browser',
      idempotencyKey: 'create',
    })
    const scopes = ['sessions:read', 'sessions:write', 'messages:read', 'messages:write']
    const headers = {
      authorization: `Bearer ${await accessOf(core).issue({ subject: 'test', scopes, workspaceId: mine.workspaceId })}`,
    }
    const transport = createConnectTransport({ baseUrl, httpVersion: '2' })
    const sessions = createClient(SessionService, transport)
    const messaging = createClient(MessagingService, transport)
    const { sessionId, conversationId } = content
    const calls = [
      sessions.getSession({ sessionId }, { headers }),
      sessions.revokeSession({ sessionId }, { headers }),
      sessions.banVisitor({ sessionId, reason: '' }, { headers }),
      messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'Hello' }, { headers }),
      messaging.listMessages({ conversationId }, { headers }),
      messaging.listConversations({ workspaceId: theirs.workspaceId }, { headers }),
    ]
    for (const refused of await Promise.all(calls.map(codeOf))) expect(refused).toEqual([Code.NotFound, 'NotFound'])
  })
})

itLong('a new database can be opened by several processes that create its indexes at the same time', async () => {
  const databases = await Promise.all(
    Array.from({ length: 6 }, () => openDatabase({ uri, name: `${name}-new`, timeoutMs: 5000 })),
  )
  const indexes = await databases[0]!.collections.events.indexes()
  expect(indexes.map((index) => index.name)).toEqual(expect.arrayContaining(['by_sequence', 'by_operation']))
  await databases[0]!.collections.events.db.dropDatabase()
  await Promise.all(databases.map((database) => database.close()))
})
