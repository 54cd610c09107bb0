import { getOption } from '@bufbuild/protobuf'
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { connectCores } from '../../core-client/connect-cores.ts'
import { createCorePool } from '../../core-client/core-pool.ts'
import { type CoreTransport, createCoreTransport } from '../../core-client/core-transport.ts'
import { createFailoverTransport } from '../../core-client/failover-transport.ts'
import { startFaultyProxy } from '../../test/support/faulty-proxy.ts'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import type { Core } from '../core.ts'
import { feedReaderOf } from '../feed/feed-reader.ts'
import { type CoreServer, serveCore } from '../server.ts'
import { coreWith } from '../test/core-with.ts'
import { testCores } from '../test/cores.ts'
import { call, requests, servedMethods, type Things, thingsOf } from '../test/operator-calls.ts'
import { accessOf } from './caller.ts'

const cores = testCores({ started: false })
let server: CoreServer
let baseUrl: string
let things: Things

async function bearer(...scopes: string[]) {
  // The token of a bot needs a workspace.
  const workspaceId = scopes.includes('bots:act') ? cores.workspaceId : undefined
  return `Bearer ${await accessOf(cores.core).issue({ subject: 'test', scopes, workspaceId })}`
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error) => Code[ConnectError.from(error).code],
  )

async function serve(core: Core) {
  const { port, close } = await serveCore(core, { host: '127.0.0.1', port: 0 })
  onTestFinished(close)
  return { url: `http://127.0.0.1:${port}`, close }
}

function connect(url = baseUrl): CoreTransport {
  const transport = createCoreTransport(url)
  onTestFinished(() => transport.cut())
  return transport
}

beforeAll(async () => {
  server = await serveCore(cores.core, { host: '127.0.0.1', port: 0 })
  baseUrl = `http://127.0.0.1:${server.port}`
  const session = await cores.newSession()
  things = await thingsOf(cores, session.sessionId, session.conversationId)
})
afterAll(() => server.close())

describe('each unary method', () => {
  const unary = servedMethods().filter(([, { methodKind }]) => methodKind === 'unary')

  it.each(someOf(unary, 25))(
    '%s gives the same answers and errors as through Connect’s handler',
    async (name, method) => {
      const through = [createConnectTransport({ baseUrl, httpVersion: '2' }), connect()]
      const needed = getOption(method, scope)
      const tokens = [undefined, 'Bearer a.b.c', await bearer('other'), await bearer(needed)]
      for (const [index, token] of tokens.entries()) {
        // Only the last token is valid. Its request is empty, so that the call changes nothing.
        const request = index === 3 ? {} : (requests[name]?.(things) ?? {})
        const answers = through.map((transport) => call(cores, method, request, token, transport as Transport))
        const [connects, plain] = await Promise.all(answers)
        expect([index, plain]).toEqual([index, connects])
      }
    },
  )
})

describe('a unary call', () => {
  const origin = 'https://a.example'
  let headers: { authorization: string }
  beforeAll(async () => {
    headers = { authorization: await bearer('visitors:act', 'leads:write', 'events:read') }
  })

  /** A TCP proxy in front of the core, and a client that calls through it. */
  async function startProxy() {
    const proxy = await startFaultyProxy(server.port)
    onTestFinished(() => proxy.close())
    const transport = connect(`http://127.0.0.1:${proxy.port}`)
    const client = createClient(SessionService, transport)
    await client.checkOrigin({ origin }, { headers })
    return { proxy, transport, client }
  }

  it.each([
    ['a malformed message', Buffer.from([0xff, 0xff]), {}, 400, 'invalid_argument'],
    ['a malformed deadline', Buffer.alloc(0), { 'connect-timeout-ms': 'soon' }, 400, 'invalid_argument'],
    ['an unknown compression', Buffer.alloc(0), { 'content-encoding': 'br' }, 501, 'unimplemented'],
    ['no token', Buffer.alloc(0), { authorization: '' }, 401, 'unauthenticated'],
  ])('with %s is rejected in the Connect protocol', async (_, body, change, status, code) => {
    const answer = await fetch(`${baseUrl}/service.session.v1.SessionService/CheckOrigin`, {
      method: 'POST',
      headers: { 'content-type': 'application/proto', ...headers, ...change },
      body,
    })
    expect([answer.status, await answer.json()]).toMatchObject([status, { code }])
  })

  it('that is too large is rejected, and later calls on the same transport succeed', async () => {
    const client = createClient(SessionService, connect())
    const tooLarge = client.checkOrigin({ origin: 'a'.repeat(17 * 1024 * 1024) }, { headers })
    expect(await codeOf(tooLarge)).toBe('ResourceExhausted')
    const large = client.checkOrigin({ origin: `https://${'a'.repeat(8_000_000)}.example` }, { headers })
    expect([await codeOf(large), await codeOf(client.checkOrigin({ origin }, { headers }))]).toEqual(['ok', 'ok'])
  })

  it('with a large message and no token is rejected, and the connection can be used again', async () => {
    const client = createClient(SessionService, connect())
    for (let count = 0; count < 3; count++)
      expect(await codeOf(client.checkOrigin({ origin: 'a'.repeat(8_000_000) }))).toBe('Unauthenticated')
    expect(await codeOf(client.checkOrigin({ origin }, { headers }))).toBe('ok')
  })

  it('ends at its deadline and on cancellation while the core does not answer', async () => {
    const { proxy, client } = await startProxy()
    proxy.freeze('answers')
    const stop = new AbortController()
    const cancelled = codeOf(client.checkOrigin({ origin }, { headers, signal: stop.signal }))
    const expired = codeOf(client.checkOrigin({ origin }, { headers, timeoutMs: 50 }))
    stop.abort()
    expect(await cancelled).toBe('Canceled')
    expect(await expired).toBe('DeadlineExceeded')
  })

  it('fails with Unavailable when its connection breaks, and a later call uses a new connection', async () => {
    const { proxy, client } = await startProxy()
    proxy.freeze('answers')
    const calls = Array.from({ length: 20 }, () => codeOf(client.checkOrigin({ origin }, { headers })))
    await new Promise((resolve) => setTimeout(resolve, 50))
    proxy.cut()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['Unavailable']))
    proxy.mend()
    expect(await codeOf(client.checkOrigin({ origin }, { headers }))).toBe('ok')
  })

  it('of an idempotent method succeeds on another core when its connection breaks', async () => {
    const { proxy, transport: first } = await startProxy()
    const second = connect()
    const pool = createCorePool({
      cores: [
        { url: 'a', transport: first, request: first.request },
        { url: 'b', transport: second, request: second.request },
      ],
    })
    const client = createClient(SessionService, createFailoverTransport({ cores: pool, deadlineMs: 20_000 }))
    proxy.freeze('answers')
    const calls = Array.from({ length: 10 }, () => codeOf(client.checkOrigin({ origin }, { headers })))
    await new Promise((resolve) => setTimeout(resolve, 50))
    proxy.cut()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ok']))
  })

  /** A core whose feed is read until the signal of the call aborts. */
  async function startWaiting() {
    const called = Promise.withResolvers<AbortSignal>()
    const waiting = {
      ...feedReaderOf(cores.core),
      async read(_query: unknown, { signal }: { signal: AbortSignal }) {
        called.resolve(signal)
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        return { events: [], cursor: 'end' }
      },
    } as unknown as ReturnType<typeof feedReaderOf>
    const part: Core['part'] = (key, make) => (key === feedReaderOf ? (waiting as never) : cores.core.part(key, make))
    const { url, close } = await serve(coreWith(cores.core, { part }))
    return { client: createClient(EventsService, connect(url)), called: called.promise, close }
  }

  const reasonOf = async (called: Promise<AbortSignal>) => {
    const signal = await called
    await until('the signal to abort', () => signal.aborted)
    return Code[(signal.reason as ConnectError).code]
  }

  it('is cancelled in the core when the caller cancels it', async () => {
    const { client, called } = await startWaiting()
    const stop = new AbortController()
    const answered = codeOf(client.listEvents({ workspaceId: cores.workspaceId }, { headers, signal: stop.signal }))
    await called
    stop.abort()
    expect([await answered, await reasonOf(called)]).toEqual(['Canceled', 'Canceled'])
  })

  it('is cancelled in the core at its deadline', async () => {
    const { client, called } = await startWaiting()
    let isCalled = false
    void called.then(() => (isCalled = true))
    // On a busy machine, the deadline may pass before the call has reached the core.
    await until('a call to reach the core', async () => {
      const answered = codeOf(client.listEvents({ workspaceId: cores.workspaceId }, { headers, timeoutMs: 100 }))
      expect(await answered).toBe('DeadlineExceeded')
      return isCalled
    })
    expect(await reasonOf(called)).toMatch(/^(Canceled|DeadlineExceeded)$/)
  })

  it('that waits for work is answered when the core stops', async () => {
    const { client, called, close } = await startWaiting()
    const answered = client.listEvents({ workspaceId: cores.workspaceId }, { headers })
    await called
    await close()
    expect(await answered).toMatchObject({ cursor: 'end' })
  })

  itLong('is never lost when its core stops, even if it must not be repeated', async () => {
    const [first, second] = [await serve(cores.core), await serve(cores.core)]
    const connected = connectCores({ urls: [first.url, second.url] })
    onTestFinished(connected.stop)
    const client = createClient(LeadService, createFailoverTransport({ cores: connected.cores, deadlineMs: 20_000 }))
    await until('both cores', () => connected.cores.hasOtherAlive({ url: '' } as never, 1))
    let isOver = false
    const outcomes: string[] = []
    const callers = Array.from({ length: 16 }, async (_, index) => {
      while (!isOver) {
        const lead = { workspaceId: cores.workspaceId, source: 'test', fields: {} }
        outcomes.push(await codeOf(client.captureLead(lead, { headers })))
        await new Promise((resolve) => setTimeout(resolve, index))
      }
    })
    await until('calls', () => outcomes.length > 50)
    await first.close()
    const atEnd = outcomes.length
    await until('calls after the stop', () => outcomes.length > atEnd + 50)
    isOver = true
    await Promise.all(callers)
    expect(new Set(outcomes)).toEqual(new Set(['ok']))
  })
})
