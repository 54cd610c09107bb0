import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type DescService, getOption } from '@bufbuild/protobuf'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { createConnectTransport } from '@connectrpc/connect-web'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { until } from '../../test/support/until.ts'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import { refusal } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'

const SEND = '/rpc/service.messaging.v1.MessagingService/SendAgentMessage'
const LIST = '/rpc/service.messaging.v1.MessagingService/ListConversations'
const WATCH = '/rpc/service.messaging.v1.MessagingService/WatchConversations'
let session: string

beforeAll(async () => {
  session = await signWorkspaceSession({ claims: { scope: 'messages:read messages:write' } })
})

/** Starts a core over HTTP with the methods that operators call. */
async function startCore() {
  const core = {
    url: '',
    calls: [] as { method: string; headers: Headers; request: unknown }[],
    watching: 0,
    refuse: undefined as ConnectError | undefined,
    tell: () => {},
    /** The core answers a call after this promise has resolved. */
    held: undefined as Promise<void> | undefined,
    async die() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const server: Server = createServer(
    connectNodeAdapter({
      routes(router) {
        router.service(MessagingService, {
          async sendAgentMessage(request, { requestHeader }) {
            core.calls.push({ method: 'sendAgentMessage', headers: requestHeader, request })
            await core.held
            if (core.refuse) throw core.refuse
            return { message: { messageId: 'msg_1', body: request.body } }
          },
          async listConversations(request, { requestHeader }) {
            core.calls.push({ method: 'listConversations', headers: requestHeader, request })
            await core.held
            return { conversations: [] }
          },
          async *watchConversations(_request, { signal }) {
            core.watching += 1
            try {
              yield { frame: { case: 'ready' as const, value: {} } }
              for (;;) {
                await new Promise<void>((resolve) => {
                  core.tell = resolve
                  signal.addEventListener('abort', () => resolve())
                })
                if (signal.aborted) return
                yield { frame: { case: 'heartbeat' as const, value: {} } }
              }
            } finally {
              core.watching -= 1
            }
          },
        })
        router.service(WorkspaceService, {
          async createConnection(request, { requestHeader }) {
            core.calls.push({ method: 'createConnection', headers: requestHeader, request })
            await core.held
            return {}
          },
        })
        router.service(CommandService, {
          async *getScreenshot({ commandId }) {
            yield { part: { case: 'header' as const, value: { commandId, byteLength: 600_000 } } }
            for (let n = 0; n < 6; n += 1)
              yield { part: { case: 'chunk' as const, value: new Uint8Array(100_000).fill(n) } }
          },
        })
      },
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  core.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => core.die().catch(() => {}))
  return core
}

async function start({ cores = 1, env = {} as Record<string, string> } = {}) {
  const wired = await Promise.all(Array.from({ length: cores }, startCore))
  const gateway = await startTestGateway({ env: { CORE_URLS: wired.map(({ url }) => url).join(','), ...env } })
  const transport = (format: 'json' | 'binary' = 'json', token = session) =>
    createConnectTransport({
      baseUrl: `${gateway.url}/rpc`,
      useBinaryFormat: format === 'binary',
      interceptors: [
        (next) => (request) => {
          request.header.set('authorization', `Bearer ${token}`)
          return next(request)
        },
      ],
    })
  return {
    ...gateway,
    wired,
    remote: wired[0]!,
    messaging: createClient(MessagingService, transport()),
    transport,
    post: (path: string, headers: Record<string, string> = {}, body: string | Uint8Array<ArrayBuffer> = '{}') =>
      fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json', ...headers },
        body,
      }),
  }
}

async function failureOf(call: Promise<unknown>) {
  const error = await call.then(
    () => new ConnectError('no failure'),
    (reason) => ConnectError.from(reason),
  )
  return [Code[error.code], error.findDetails(ErrorInfoSchema)[0]?.code]
}

describe('/rpc', () => {
  test.each(['json', 'binary'] as const)('forwards calls of the console to a core (%s)', async (format) => {
    const { transport, remote } = await start()
    const client = createClient(MessagingService, transport(format))
    const { message } = await client.sendAgentMessage({ conversationId: 'cnv_1', body: 'Grüße' })
    expect(message).toMatchObject({ messageId: 'msg_1', body: 'Grüße' })
    expect(remote.calls[0]?.headers.get('authorization')).toBe(`Bearer ${session}`)
  })

  test('forwards code and details of an error', async () => {
    const { messaging, remote } = await start()
    remote.refuse = refusal('NotFound')
    expect(await failureOf(messaging.sendAgentMessage({}))).toEqual(['FailedPrecondition', 'NotFound'])
  })

  test('forwards the correlation id of the request, but no proxy headers', async () => {
    const { post, remote } = await start()
    const response = await post(SEND, {
      'x-correlation-id': 'corr-1',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'evil.example',
      forwarded: 'for=10.0.0.1',
      cookie: 'a=b',
      'x-real-ip': '10.0.0.1',
    })
    expect([response.status, response.headers.get('x-correlation-id')]).toEqual([200, 'corr-1'])
    expect(response.headers.get('cache-control')).toBe('no-store')
    const { headers } = remote.calls[0]!
    expect(headers.get('x-correlation-id')).toBe('corr-1')
    for (const name of ['x-forwarded-for', 'x-forwarded-host', 'forwarded', 'cookie', 'x-real-ip', 'origin'])
      expect(headers.get(name), name).toBeNull()
  })

  test('forwards a stream unbuffered, and cancels the call when the client disconnects', async () => {
    const { messaging, remote } = await start()
    const leave = new AbortController()
    const seen: (string | undefined)[] = []
    const reading = (async () => {
      for await (const { frame } of messaging.watchConversations({}, { signal: leave.signal })) {
        seen.push(frame.case)
        if (frame.case === 'ready') remote.tell()
        else leave.abort()
      }
    })()
    expect(await failureOf(reading)).toEqual(['Canceled', undefined])
    expect(seen).toEqual(['ready', 'heartbeat'])
    await until('the watch call to end', () => remote.watching === 0)
  })

  test('streams a complete screenshot', async () => {
    const { transport } = await start()
    let bytes = 0
    for await (const { part } of createClient(CommandService, transport('binary')).getScreenshot({
      commandId: 'scr_1',
    }))
      if (part.case === 'chunk') bytes += part.value.length
    expect(bytes).toBe(600_000)
  })

  test('ends streams with an end frame when the gateway stops', async () => {
    const { messaging, gateway, remote } = await start()
    const reading = (async () => {
      for await (const { frame } of messaging.watchConversations({})) if (frame.case === 'ready') void gateway.close()
    })()
    expect(await failureOf(reading)).toEqual(['Unavailable', 'ServiceUnavailable'])
    await until('the watch call to end', () => remote.watching === 0)
  })

  test('ends streams with an end frame when the core dies', async () => {
    const { messaging, remote } = await start()
    const reading = (async () => {
      for await (const { frame } of messaging.watchConversations({})) if (frame.case === 'ready') void remote.die()
    })()
    expect(await failureOf(reading)).toEqual(['Unavailable', 'ServiceUnavailable'])
  })
})

describe('/rpc access', () => {
  test.each<[string, () => Promise<string> | string]>([
    ['no session', () => ''],
    ['garbage', () => 'Bearer nonsense'],
    ['a service token', async () => `Bearer ${await signWorkspaceSession({ claims: { aud: 'service.core' } })}`],
    [
      'a visitor’s grant',
      async () => `Bearer ${await signWorkspaceSession({ claims: { aud: 'service.widget.public-api' } })}`,
    ],
  ])('rejects a call with %s as Unauthenticated in the Connect protocol', async (_, authorization) => {
    const { post, remote } = await start()
    const given = { authorization: await authorization() }
    const unary = await post(SEND, given)
    expect([unary.status, unary.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await unary.json()).toMatchObject({
      code: 'unauthenticated',
      details: [{ type: 'service.error.v1.ErrorInfo' }],
    })
    const stream = await post(WATCH, { ...given, 'content-type': 'application/connect+json' }, envelope('{}'))
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'application/connect+json'])
    expect(await stream.text()).toContain('"code":"unauthenticated"')
    expect([remote.calls.length, remote.watching]).toEqual([0, 0])
  })

  test('answers `unimplemented` for methods that operators may not call', async () => {
    const { post, remote } = await start()
    const services: DescService[] = [SessionService, MessagingService, CommandService, LeadService, WorkspaceService]
    const methods = services.flatMap((service) => service.methods)
    const ours = methods.filter((method) => ['visitors:act', 'deliveries:work'].includes(getOption(method, scope)))
    expect(ours.length).toBeGreaterThan(15)
    for (const { parent, name } of ours) {
      const response = await post(`/rpc/${parent.typeName}/${name}`)
      expect([name, response.status, await response.json()]).toMatchObject([name, 501, { code: 'unimplemented' }])
    }
    for (const path of ['/rpc/service.messaging.v1.MessagingService/Nothing', '/rpc/grpc.health.v1.Health/Check'])
      expect((await post(path)).status).toBe(501)
    for (const path of [
      '/rpc/livez',
      '/rpc/service.messaging.v1.MessagingService/../../livez',
      '/rpc/a/b/c',
      '/rpc//livez',
    ])
      expect((await post(path)).status).toBeGreaterThanOrEqual(404)
    expect(remote.calls).toEqual([])
  })

  test('allows only POST', async () => {
    const { url } = await start()
    const get = await fetch(`${url}${LIST}?connect=v1&encoding=json&message={}`, {
      headers: { authorization: `Bearer ${session}` },
    })
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'OPTIONS, POST'])
  })

  test.each(['application/grpc', 'application/grpc-web+proto', 'text/plain', 'application/x-www-form-urlencoded'])(
    'rejects other protocols (%s)',
    async (type) => {
      const { post, remote } = await start()
      expect((await post(SEND, { 'content-type': type })).status).toBe(415)
      expect(remote.calls).toEqual([])
    },
  )

  test.each<[string, Record<string, string>]>([
    ['another origin', { origin: 'https://evil.example' }],
    ['a hidden origin', { origin: 'null' }],
    ['another port', { origin: 'http://127.0.0.1:1' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another host of the site', { 'sec-fetch-site': 'same-site' }],
  ])('rejects pages of %s', async (_, headers) => {
    const { post, remote } = await start()
    const response = await post(SEND, headers)
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([403, null])
    expect(remote.calls).toEqual([])
  })

  test('accepts requests from pages of the gateway’s host, and sends no CORS headers to other origins', async () => {
    const { post, url } = await start()
    expect((await post(SEND, { origin: url, 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    const preflight = await fetch(`${url}${SEND}`, {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    })
    expect([...preflight.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  test('rejects a malformed message with 400', async () => {
    const { post, remote } = await start()
    const broken = await post(SEND, { 'content-type': 'application/proto' }, '\u00ff\u00ff')
    expect([broken.status, await broken.json()]).toMatchObject([400, { code: 'invalid_argument' }])
    expect(remote.calls).toEqual([])
  })

  test('rejects an oversized body, and a session token in the URL', async () => {
    const { post, remote } = await start()
    const large = await post(SEND, {}, JSON.stringify({ body: 'x'.repeat(70_000) }))
    expect([large.status, await large.json()]).toMatchObject([429, { code: 'resource_exhausted' }])
    expect((await post(`${SEND}?token=${session}`)).status).toBe(400)
    expect(remote.calls).toEqual([])
  })

  test('limits calls per client address', async () => {
    const { post } = await start({ env: { RATE_LIMIT_RPC_PER_MINUTE: '1' } })
    expect((await post(LIST)).status).toBe(200)
    const refused = await post(LIST)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
  })

  test('answers 404 if the setting CONSOLE is off', async () => {
    const { post } = await start({ env: { CONSOLE: 'off' } })
    expect((await post(SEND)).status).toBe(404)
  })
})

describe('/rpc with several cores', () => {
  test('uses the next core if one is unreachable', async () => {
    const { messaging, wired } = await start({ cores: 3 })
    await wired[0]!.die()
    await wired[1]!.die()
    for (let n = 0; n < 4; n += 1) await messaging.sendAgentMessage({ body: 'Hello' })
    expect(wired[2]!.calls).toHaveLength(4)
  })

  test('repeats a call on another core only if its method is repeatable', async () => {
    const { messaging, wired } = await start({ cores: 2 })
    for (const core of wired) core.held = new Promise(() => {})
    const listing = messaging.listConversations({})
    await until('a core to be called', () => wired.some(({ calls }) => calls.length > 0))
    const [first, second] = wired[0]!.calls.length > 0 ? wired : [wired[1]!, wired[0]!]
    second!.held = undefined
    await first!.die()
    expect((await listing).conversations).toEqual([])

    const { transport, wired: others } = await start({ cores: 2 })
    for (const core of others) core.held = new Promise(() => {})
    const making = failureOf(createClient(WorkspaceService, transport()).createConnection({ name: 'Site' }))
    const asked = await until('a core to be called', () => others.find(({ calls }) => calls.length > 0))
    for (const core of others) core.held = undefined
    await asked.die()
    expect(await making).toEqual(['Unavailable', 'ServiceUnavailable'])
    expect(others.flatMap(({ calls }) => calls)).toHaveLength(1)
  })

  test('answers `unavailable` in the Connect protocol if no core is reachable', async () => {
    const { messaging, wired, lines } = await start()
    await wired[0]!.die()
    expect(await failureOf(messaging.sendAgentMessage({}))).toEqual(['Unavailable', 'ServiceUnavailable'])
    const stream = messaging.watchConversations({})[Symbol.asyncIterator]()
    expect(await failureOf(stream.next())).toEqual(['Unavailable', 'ServiceUnavailable'])
    expect(lines.join('\n')).not.toContain(session)
  })
})

function envelope(json: string): Uint8Array<ArrayBuffer> {
  const frame = Buffer.alloc(5 + json.length)
  frame.writeUInt32BE(json.length, 1)
  frame.write(json, 5)
  return frame
}
