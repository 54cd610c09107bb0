import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { http2Bytes } from '../../test/support/http2-bytes.ts'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { serveCore } from '../server.ts'
import { testCores } from '../test/cores.ts'
import { createCallMemory } from './call-memory.ts'
import { accessOf } from './caller.ts'

const cores = testCores({ started: false })
const path = '/service.session.v1.SessionService/CheckOrigin'
const kib = 1024
let token: string

beforeAll(async () => {
  token = await accessOf(cores.core).issue({ subject: 'hostile', scopes: ['visitors:act'] })
})

/** Starts a core with little memory for calls. */
async function start({ maxBytes = 512 * kib, timeoutMs = 300 } = {}) {
  const memory = createCallMemory({ maxBytes, timeoutMs })
  const { port, close } = await serveCore(cores.core, { host: '127.0.0.1', port: 0, memory })
  const sockets: net.Socket[] = []
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await close()
  })

  /** Opens a connection whose answers are not read, and sends these bytes. */
  function send(bytes: string | Buffer) {
    const socket = net.connect(port, '127.0.0.1')
    socket.on('error', () => {}).pause()
    sockets.push(socket)
    socket.write(bytes)
    return socket
  }

  const post = (body: Buffer, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/proto', authorization: `Bearer ${token}`, ...headers },
      body: new Uint8Array(body),
    })

  return { port, send, post, isServing: async () => (await post(Buffer.alloc(0))).status === 200 }
}

const head = (length: number, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/proto\r\n` +
  `${more}Content-Length: ${length}\r\n\r\n`

describe('a caller with any service token cannot use up the memory of a core', () => {
  it('by pipelined calls of unknown methods whose answers it does not read', async () => {
    const { send, isServing } = await start()
    const call = `POST /none/${'x'.repeat(50)} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`
    const socket = send('')
    let written = 0
    while (!socket.destroyed && written < 64 * 1024 * kib && socket.write(call.repeat(1_000))) written += 1
    await until('the connection to be closed or not to be read', () => socket.destroyed || socket.writableNeedDrain)
    expect(await isServing()).toBe(true)
  })

  it('by messages of which it sends half', async () => {
    const { send, post, isServing } = await start()
    const half = Buffer.alloc(100 * kib)
    const opened: net.Socket[] = []
    await until('the memory to be used up', async () => {
      // A busy core may have dropped the first ones.
      for (let count = 0; count < 10; count++) opened.push(send(Buffer.concat([Buffer.from(head(200 * kib)), half])))
      const answer = await post(Buffer.alloc(100 * kib)).catch(() => undefined)
      return answer?.status !== 200 && answer?.status !== 400
    })
    for (const socket of opened) if (!socket.destroyed) socket.resume()
    await Promise.all(opened.map((socket) => socket.destroyed || once(socket, 'close')))
    await until('the core to serve', isServing)
  })

  it('by many calls without a message on many connections', async () => {
    const { send, isServing } = await start()
    for (let count = 0; count < 200; count++) send(head(10))
    await until('the core to serve', () => isServing().catch(() => false))
  })

  itLong('by HTTP/2 calls whose messages it does not send', async () => {
    const { port, isServing } = await start()
    const session = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {})
    onTestFinished(() => session.destroy())
    let reset = 0
    for (let count = 0; count < 400; count++) {
      const call = session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/proto',
        authorization: `Bearer ${token}`,
      })
      call.on('error', () => {}).on('close', () => (reset += 1))
    }
    await until('all calls to be reset', () => reset === 400)
    expect(await isServing()).toBe(true)
  })

  it.each(
    someOf(
      [
        ['submessages', 'application/proto', Buffer.from('0a00', 'hex'), 'binary'],
        ['unknown fields', 'application/proto', Buffer.from('f83f01', 'hex'), 'binary'],
        ['JSON objects', 'application/json', Buffer.from('{},'), 'json'],
      ],
      1,
    ),
  )('by a message of many %s', async (_, type, item) => {
    const { port } = await start({ maxBytes: 64 * 1024 * kib, timeoutMs: 20_000 })
    const many = Buffer.alloc(15 * 1024 * kib, item)
    const body =
      type === 'application/json' ? Buffer.concat([Buffer.from('{"messages":['), many, Buffer.from('{}]}')]) : many
    const method = '/service.messaging.v1.MessagingService/SendVisitorMessages'
    const before = process.memoryUsage().heapTotal
    const url = `http://127.0.0.1:${port}${method}`
    const headers = { 'content-type': type, authorization: `Bearer ${token}` }
    const answer = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body) })
    expect(await answer.json()).toMatchObject({
      code: 'resource_exhausted',
      message: 'the message has too many fields',
    })
    expect(process.memoryUsage().heapTotal - before).toBeLessThan(200 * 1024 * kib)
  })

  itLong('by a message of many submessages in a stream', async () => {
    const { port, isServing } = await start({ maxBytes: 64 * 1024 * kib, timeoutMs: 20_000 })
    const many = Buffer.alloc(15 * 1024 * kib, Buffer.from('0a00', 'hex'))
    const head = Buffer.alloc(5)
    head.writeUInt32BE(many.length, 1)
    const before = process.memoryUsage().heapTotal
    const answer = await fetch(`http://127.0.0.1:${port}/service.command.v1.CommandService/UploadScreenshot`, {
      method: 'POST',
      headers: { 'content-type': 'application/connect+proto', authorization: `Bearer ${token}` },
      body: new Uint8Array(Buffer.concat([head, many])),
    })
    expect(await answer.text()).toContain('the message has too many fields')
    expect(process.memoryUsage().heapTotal - before).toBeLessThan(200 * 1024 * kib)
    expect(await isServing()).toBe(true)
  })

  it('by streams of which it sends half a message', async () => {
    const { port, isServing } = await start({ maxBytes: 4 * 1024 * kib, timeoutMs: 20_000 })
    const head = Buffer.alloc(5)
    head.writeUInt32BE(8 * 1024 * kib, 1)
    const half = Buffer.concat([head, Buffer.alloc(1024 * kib)])
    const session = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {})
    onTestFinished(() => session.destroy())
    let ended = 0
    const calls = Array.from({ length: 10 }, () =>
      session
        .request({
          ':method': 'POST',
          ':path': '/service.messaging.v1.MessagingService/WatchEvents',
          'content-type': 'application/connect+proto',
          authorization: `Bearer ${token}`,
        })
        .on('error', () => {})
        .on('close', () => (ended += 1))
        .resume(),
    )
    for (const call of calls) call.write(half)
    await until('most calls to end', () => ended >= 6)
    session.destroy()
    await until('the core to serve', isServing)
  })

  it('by a message without end', async () => {
    const { port, isServing } = await start({ maxBytes: 64 * 1024 * kib, timeoutMs: 20_000 })
    const request = http.request({
      port,
      path,
      method: 'POST',
      headers: { 'content-type': 'application/proto', authorization: `Bearer ${token}` },
    })
    request.on('error', () => {})
    const block = Buffer.alloc(64 * kib)
    const fill = () => {
      while (!request.destroyed && request.write(block));
    }
    request.on('drain', fill)
    fill()
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    expect(answer.statusCode).toBe(429)
    request.destroy()
    expect(await isServing()).toBe(true)
  })
})

describe('a caller without a valid token', () => {
  const { preface, settings, head, reset } = http2Bytes
  const proto = { 'content-type': 'application/proto' }
  const calls = (headers: (stream: number) => Record<string, string>, more: (stream: number) => Buffer[]) =>
    Array.from({ length: 2_000 }, (_, index) => 2 * index + 1).flatMap((id) => [
      head(id, path, headers(id)),
      ...more(id),
    ])

  it.each<[string, Buffer[]]>(
    someOf(
      [
        [
          'resets its calls at once',
          calls(
            () => proto,
            (id) => [reset(id)],
          ),
        ],
        [
          'sends calls without a token',
          calls(
            () => proto,
            () => [],
          ),
        ],
        [
          'sends calls with a new wrong token each',
          calls(
            (id) => ({ ...proto, authorization: `Bearer a.b.${id}` }),
            () => [],
          ),
        ],
        [
          'sends gRPC calls',
          calls(
            () => ({ 'content-type': 'application/grpc' }),
            () => [],
          ),
        ],
        [
          'resets calls of unknown paths',
          [...Array(2_000).keys()].flatMap((n) => [head(2 * n + 1, '/x'), reset(2 * n + 1)]),
        ],
      ],
      2,
    ),
  )('loses its HTTP/2 connection if it %s', async (_, frames) => {
    const { send, isServing } = await start({ maxBytes: 64 * 1024 * kib, timeoutMs: 20_000 })
    const calls = vi.spyOn(accessOf(cores.core), 'authenticate')
    const socket = send(Buffer.concat([preface, settings, ...frames])).resume()
    await until('the end of the connection', () => socket.closed)
    expect(await isServing()).toBe(true)
    expect(calls.mock.calls.length).toBeLessThan(2_000)
  })
})

it.each(someOf([1, 20], 1))(
  'a caller without a token that ends its HTTP/2 connection with an error after %s calls does not stop the core',
  async (count) => {
    const { preface, settings, head, goaway } = http2Bytes
    const { send, isServing } = await start()
    const failures: unknown[] = []
    const note = (error: unknown) => failures.push(error)
    process.on('uncaughtException', note)
    onTestFinished(() => void process.off('uncaughtException', note))
    const heads = Array.from({ length: count }, (_, index) => head(2 * index + 1, path))
    for (const bytes of [[...heads, goaway], heads.flatMap((each) => [each, goaway]), [goaway, ...heads]]) {
      const socket = send(Buffer.concat([preface, settings, ...bytes])).resume()
      await until('the end of the connection', () => socket.closed)
    }
    expect(await isServing()).toBe(true)
    expect(failures).toEqual([])
  },
)

it('a caller with a valid token may cancel 500 calls and keeps its HTTP/2 connection', async () => {
  const { port } = await start({ maxBytes: 64 * 1024 * kib, timeoutMs: 20_000 })
  const session = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {})
  onTestFinished(() => session.destroy())
  const call = (end: boolean) =>
    session
      .request(
        { ':method': 'POST', ':path': path, 'content-type': 'application/proto', authorization: `Bearer ${token}` },
        { endStream: end },
      )
      .on('error', () => {})
  const [answer] = await once(call(true), 'response')
  expect(answer[':status']).toBe(200)
  const cancelled = Array.from({ length: 500 }, () => call(false))
  for (const each of cancelled) each.close(http2.constants.NGHTTP2_CANCEL)
  await Promise.all(cancelled.map((each) => each.closed || once(each, 'close')))
  const [last] = await once(call(true), 'response')
  expect(last[':status']).toBe(200)
})

it('an HTTP/2 call is authenticated once, and calls that arrive together note the use of their token once', async () => {
  const { port } = await start({ maxBytes: 64 * 1024 * kib, timeoutMs: 20_000 })
  const calls = 20
  const fresh = await accessOf(cores.core).issue({ subject: 'fresh', scopes: ['visitors:act'] })
  const authenticated = vi.spyOn(accessOf(cores.core), 'authenticate')
  const noted = vi.spyOn(cores.core.db.tokens, 'updateOne')
  onTestFinished(() => void vi.restoreAllMocks())
  const session = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {})
  onTestFinished(() => session.destroy())
  const headers = { 'content-type': 'application/proto', authorization: `Bearer ${fresh}` }
  await Promise.all(
    Array.from({ length: calls }, async () => {
      const call = session.request({ ':method': 'POST', ':path': path, ...headers }, { endStream: true })
      const [answer] = await once(call, 'response')
      expect(answer[':status']).toBe(200)
    }),
  )
  expect(authenticated).toHaveBeenCalledTimes(calls)
  expect(noted).toHaveBeenCalledOnce()
})

it.each([
  ['a line end', 'secret\\r\\nx'],
  ['a control character', 'secret\u0001'],
  ['a NUL byte', 'secret\0'],
  ['characters beyond Latin-1', 'secret€'],
  ['20,000 characters', `secret${'a'.repeat(20_000)}`],
])('an answer of a core never quotes the token that has %s', async (_, value) => {
  const { port } = await start()
  const socket = net.connect(port, '127.0.0.1').on('error', () => {})
  let text = ''
  socket.on('data', (chunk) => (text += chunk))
  const request = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${value}\r\n`
  socket.write(`${request}Content-Type: application/proto\r\nContent-Length: 0\r\n\r\n`)
  await once(socket, 'close')
  expect(text).toMatch(/^HTTP\/1\.1 4\d\d/)
  expect(text).not.toContain('secret')
})
