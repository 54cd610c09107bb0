import { create, getOption } from '@bufbuild/protobuf'
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { type Frame, FrameSchema, LinkService } from '#proto/link/v1/link_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { type CoreServer, serveCore } from '../../core/server.ts'
import { testCores } from '../../core/test/cores.ts'
import { call, requests, servedMethods, type Things, thingsOf } from '../../core/test/operator-calls.ts'
import { createCorePool } from '../../core-client/core-pool.ts'
import { createCoreTransport } from '../../core-client/core-transport.ts'
import { createFailoverTransport } from '../../core-client/failover-transport.ts'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'

const cores = testCores()
let server: CoreServer
let baseUrl: string
let things: Things
const closers: (() => unknown)[] = []

/** Metrics of a client's links. */
function newMetrics() {
  const seen = { frames: [] as number[], underWay: 0 }
  const linkFrames = { observe: (calls: number) => void seen.frames.push(calls) }
  const linkCalls = {
    inc(change: number) {
      seen.underWay += change
    },
  }
  return { seen, metrics: { linkFrames, linkCalls } }
}

const bearer = async (...scopes: string[]) => `Bearer ${await cores.core.access.issue({ subject: 'test', scopes })}`

/** Connects to a core and waits until calls use the link. */
async function linked(url = baseUrl) {
  const { seen, metrics } = newMetrics()
  const transport = createCoreTransport(url, undefined, metrics)
  closers.push(() => transport.cut())
  const client = createClient(SessionService, transport)
  const headers = { authorization: await bearer('visitors:act') }
  await until('the link', async () => {
    await client.checkOrigin({ origin: 'https://a.example' }, { headers })
    return seen.frames.length > 0
  })
  return { transport, client, seen }
}

beforeAll(async () => {
  server = await serveCore(cores.core, { host: '127.0.0.1', port: 0 })
  baseUrl = `http://127.0.0.1:${server.port}`
  const session = await cores.newSession()
  things = await thingsOf(cores, session.sessionId, session.conversationId)
})
afterAll(async () => {
  for (const close of closers) close()
  await server.close()
})

/** A TCP proxy in front of the core. */
async function startProxy() {
  const proxy = await startLink(server.port)
  closers.push(() => proxy.close())
  return {
    ...proxy,
    url: `http://127.0.0.1:${proxy.port}`,
    /** Cuts the open connections only. */
    cut() {
      proxy.cut()
      proxy.mend()
    },
  }
}

const linkClient = () => createClient(LinkService, createConnectTransport({ baseUrl, httpVersion: '2' }))

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error) => Code[ConnectError.from(error).code],
  )

describe('each unary method over a link', () => {
  let shared: ReturnType<typeof linked> | undefined
  const unary = servedMethods().filter(([, { methodKind }]) => methodKind === 'unary')

  it.each(unary)('%s gives the same answers and errors as over HTTP', async (name, method) => {
    const http = createConnectTransport({ baseUrl, httpVersion: '2' })
    shared ??= linked()
    const { transport: link } = await shared
    const needed = getOption(method, scope)
    const tokens = [undefined, 'Bearer a.b.c', await bearer('other'), await bearer(needed)]
    for (const [index, token] of tokens.entries()) {
      // Only the last token is valid. Its request is empty, so that the call changes nothing.
      const request = index === 3 ? {} : (requests[name]?.(things) ?? {})
      const answers = [http, link].map((transport) => call(cores, method, request, token, transport as Transport))
      const [overHttp, overLink] = await Promise.all(answers)
      expect([index, overLink]).toEqual([index, overHttp])
    }
  })
})

describe('a link between a client process and a core', () => {
  const origin = 'https://a.example'
  let headers: { authorization: string }
  beforeAll(async () => {
    headers = { authorization: await bearer('visitors:act', 'deliveries:work', 'messages:write') }
  })

  it('sends the calls of one turn of the event loop together', async () => {
    const { seen, client } = await linked()
    seen.frames.length = 0
    await Promise.all(Array.from({ length: 50 }, () => client.checkOrigin({ origin }, { headers })))
    expect(seen.frames).toEqual([50])
    expect(seen.underWay).toBe(0)
  })

  it('does not delay small calls behind a large message', async () => {
    const { client } = await linked()
    const order: string[] = []
    const large = client
      .checkOrigin({ origin: `https://${'a'.repeat(8_000_000)}.example` }, { headers })
      .finally(() => order.push('large'))
    const small = client.checkOrigin({ origin }, { headers }).finally(() => order.push('small'))
    expect(await Promise.all([large, small])).toMatchObject([{ allowed: false }, { allowed: false }])
    expect(order).toEqual(['small', 'large'])
  })

  it('rejects a message that is too large, and still transmits other calls', async () => {
    const { client } = await linked()
    const tooLarge = client.checkOrigin({ origin: 'a'.repeat(17 * 1024 * 1024) }, { headers })
    expect(await codeOf(tooLarge)).toBe('ResourceExhausted')
    expect(await codeOf(client.checkOrigin({ origin }, { headers }))).toBe('ok')
  })

  it('ends calls at their deadline and on cancellation while the core does not answer', async () => {
    const proxy = await startProxy()
    const { seen, client } = await linked(proxy.url)
    proxy.freeze('answers')
    const stop = new AbortController()
    const cancelled = codeOf(client.checkOrigin({ origin }, { headers, signal: stop.signal }))
    const expired = codeOf(client.checkOrigin({ origin }, { headers, timeoutMs: 50 }))
    stop.abort()
    expect(await cancelled).toBe('Canceled')
    expect(await expired).toBe('DeadlineExceeded')
    expect(seen.underWay).toBe(0)
  })

  it('fails its running calls with Unavailable when it is cut, and later calls use a new link', async () => {
    const proxy = await startProxy()
    const { seen, client } = await linked(proxy.url)
    proxy.freeze('answers')
    const calls = Array.from({ length: 20 }, () => codeOf(client.checkOrigin({ origin }, { headers })))
    await until('the calls to be sent', () => seen.frames.at(-1) === 20)
    proxy.cut()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['Unavailable']))
    seen.frames.length = 0
    await until('the next link', async () => {
      await codeOf(client.checkOrigin({ origin }, { headers }))
      return seen.frames.length > 0
    })
  })

  it('does not fail idempotent calls when it is cut: the client repeats them on another core', async () => {
    const proxy = await startProxy()
    const { seen, transport: first } = await linked(proxy.url)
    const second = createCoreTransport(baseUrl)
    closers.push(() => second.cut())
    const pool = createCorePool({
      cores: [
        { url: 'a', transport: first },
        { url: 'b', transport: second },
      ],
    })
    const client = createClient(SessionService, createFailoverTransport({ cores: pool, deadlineMs: 20_000 }))
    proxy.freeze('answers')
    const calls = Array.from({ length: 10 }, () => codeOf(client.checkOrigin({ origin }, { headers })))
    await until('a call on the link', () => seen.underWay > 0)
    proxy.cut()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ok']))
  })

  it('rejects calls with Unavailable if the core does not read and too many bytes are unsent', async () => {
    const proxy = await startProxy()
    const { seen, client } = await linked(proxy.url)
    proxy.freeze('calls')
    const large = 'a'.repeat(4_000_000)
    const calls = Array.from({ length: 12 }, () => codeOf(client.checkOrigin({ origin: large }, { headers })))
    const first = await Promise.race(calls)
    expect(first).toBe('Unavailable')
    proxy.cut()
    await Promise.all(calls)
    expect(seen.underWay).toBe(0)
  })
})

describe('a core that serves links', () => {
  let authorization: string
  beforeAll(async () => {
    authorization = await bearer('visitors:act')
  })

  /** Opens a link, sends the frames and returns the frames of the core until `isDone`. */
  async function exchange(frames: object[], isDone: (seen: Frame[]) => boolean): Promise<Frame[]> {
    const stop = new AbortController()
    async function* input() {
      yield { frames: frames.map((frame) => create(FrameSchema, frame)) }
      await new Promise((resolve) => stop.signal.addEventListener('abort', resolve))
    }
    const seen: Frame[] = []
    try {
      for await (const answer of linkClient().link(input(), { headers: { authorization }, signal: stop.signal })) {
        seen.push(...answer.frames)
        if (isDone(seen)) break
      }
    } finally {
      stop.abort()
    }
    return seen
  }

  const failuresOf = (frames: Frame[]) =>
    frames.flatMap(({ id, kind }) => (kind.case === 'failure' ? [[id, Code[kind.value.code]]] : []))
  const checkOrigin = 'service.session.v1.SessionService/CheckOrigin'
  const callFrame = (id: number, call: object) => ({
    id,
    kind: { case: 'call', value: { method: checkOrigin, authorization, ...call } },
  })

  it('answers each invalid call with an error, and a valid call on the same link with success', async () => {
    const frames = await exchange(
      [
        callFrame(1, { method: 'none' }),
        callFrame(2, { method: 'service.messaging.v1.MessagingService/WatchEvents' }),
        callFrame(3, { method: 'service.link.v1.LinkService/Link' }),
        callFrame(4, { message: Buffer.from([0xff, 0xff, 0xff]) }),
        callFrame(5, { authorization: '' }),
        { id: 6, kind: { case: 'cancel', value: {} } },
        { id: 7, kind: { case: 'answer', value: Buffer.from('not from a client') } },
        { id: 8 },
        callFrame(9, {}),
      ],
      (seen) => seen.filter(({ id }) => id > 0).length === 6,
    )
    expect(failuresOf(frames).sort()).toEqual([
      [1, 'Unimplemented'],
      [2, 'Unimplemented'],
      [3, 'Unimplemented'],
      [4, 'InvalidArgument'],
      [5, 'Unauthenticated'],
    ])
    expect(frames.find(({ id }) => id === 9)?.kind.case).toBe('answer')
  })

  it('ignores a call that has the id of a running call', async () => {
    const count = async () =>
      (await cores.core.metrics.calls.get()).values
        .filter(({ labels }) => labels.method === 'CheckOrigin')
        .reduce((sum, { value }) => sum + value, 0)
    const before = await count()
    await exchange([callFrame(1, {}), callFrame(1, {})], (seen) => seen.some(({ id }) => id === 1))
    expect((await count()) - before).toBe(1)
  })

  it('ends a link if its incomplete messages together exceed 32 MiB', async () => {
    const part = Buffer.alloc(1024 * 1024)
    async function* input() {
      for (let index = 0; index < 40; index += 1)
        yield { frames: [create(FrameSchema, { id: 1 + (index % 4), kind: { case: 'part', value: part } })] }
      await new Promise(() => {})
    }
    const drained = async () => {
      for await (const { frames } of linkClient().link(input(), { headers: { authorization } })) void frames
    }
    expect(await codeOf(drained())).toBe('ResourceExhausted')
  })

  it('rejects a link that is opened without a valid token', async () => {
    for (const given of ['', 'Bearer a.b.c']) {
      const answers = linkClient().link((async function* () {})(), { headers: { authorization: given } })
      expect(await codeOf(answers[Symbol.asyncIterator]().next())).toBe('Unauthenticated')
    }
  })

  it('answers all received calls when it is stopped', async () => {
    const stopping = await serveCore(cores.core, { host: '127.0.0.1', port: 0 })
    const { seen, client } = await linked(`http://127.0.0.1:${stopping.port}`)
    const calls = Array.from({ length: 30 }, (_, index) =>
      codeOf(client.checkOrigin({ origin: `https://o${index}.example` }, { headers: { authorization } })),
    )
    await until('the calls to be sent', () => seen.underWay === 30)
    await new Promise(setImmediate)
    await stopping.close()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ok']))
  })
})
