import { randomBytes } from 'node:crypto'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createTcpServer, type Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { afterEach, expect, it } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { someOf } from '../test/support/is-long.ts'
import { listen } from '../test/support/listen.ts'
import { createCoreTransport } from './core-transport.ts'

let uncaught: unknown[]
const onUncaught = (error: unknown) => uncaught.push(error)

afterEach(() => void process.off('uncaughtExceptionMonitor', onUncaught))

/** Servers that do not run a core. The key says what the server does. */
const strangers: Record<string, () => Server> = {
  'sends random bytes': () => createTcpServer((socket) => void socket.on('error', () => {}).write(randomBytes(10_000))),
  'refuses requests': () =>
    createTcpServer((socket) => void socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  'answers with another type': () =>
    createHttpServer((_request, response) => void response.setHeader('content-type', 'text/html').end('<p>')),
  'answers with a damaged message': () =>
    createHttpServer(
      (_request, response) => void response.setHeader('content-type', 'application/proto').end('\xff\xff'),
    ),
  'answers with a damaged error': () =>
    createHttpServer(
      (_request, response) => void response.writeHead(503, { 'content-type': 'application/json' }).end('{"code":1'),
    ),
  'answers with endless headers': () =>
    createTcpServer((socket) => {
      socket.on('error', () => {}).write('HTTP/1.1 200 OK\r\n')
      const fill = () => {
        while (!socket.destroyed && socket.write(`x-a: ${'a'.repeat(60_000)}\r\n`));
      }
      socket.on('drain', fill)
      fill()
    }),
  'answers half a message': () =>
    createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: 9\r\n\r\nab')
    }),
  'resets connections': () => createTcpServer((socket) => void socket.on('error', () => {}).resetAndDestroy()),
  'closes connections': () => createTcpServer((socket) => void socket.on('error', () => {}).end()),
  'never answers': () => createTcpServer((socket) => void socket.on('error', () => {}).resume()),
  'ends every session': () =>
    createHttp2Server().on('session', (session) => void session.on('error', () => {}).goaway(1)) as unknown as Server,
  'destroys every session': () =>
    createHttp2Server().on('stream', ({ session }) =>
      session?.on('error', () => {}).destroy(undefined, 2),
    ) as unknown as Server,
  'answers without end': () =>
    createHttpServer((_request, response) => {
      response.on('error', () => {}).setHeader('content-type', 'application/proto')
      const fill = () => {
        while (!response.destroyed && response.write(Buffer.alloc(60_000)));
      }
      response.on('drain', fill)
      fill()
    }),
  'answers streams without end': () =>
    createHttp2Server().on('stream', (stream) => {
      stream.on('error', () => {}).respond({ ':status': 200, 'content-type': 'application/proto' })
      const fill = () => {
        while (!stream.destroyed && stream.write(Buffer.alloc(60_000)));
      }
      stream.on('drain', fill)
      fill()
    }) as unknown as Server,
}

const options = { timeoutMs: 200, headers: { authorization: 'Bearer none' } }
const unaryCall = (transport: Transport) => createClient(MessagingService, transport).listMessages({}, options)
async function streamCall(transport: Transport) {
  for await (const answer of createClient(MessagingService, transport).watchConversations({}, options)) void answer
}

it.each(someOf(Object.keys(strangers), 5))(
  'a transport to a server that is not a core rejects calls and keeps the process alive when the server %s',
  async (name) => {
    uncaught = []
    process.on('uncaughtExceptionMonitor', onUncaught)
    const baseUrl = (await listen((strangers[name] as () => Server)())).url
    for (let turns = 0; turns < 4; turns++) {
      const transport = createCoreTransport(baseUrl)
      const calls = [unaryCall, unaryCall, streamCall].map((call) => call(transport))
      const outcomes = calls.map((call) => call.then(() => 'answered', ConnectError.from))
      for (const outcome of outcomes) {
        expect(await outcome).toBeInstanceOf(ConnectError)
        for (let turn = 0; turn < turns; turn++) await nextTurn()
        transport.cut()
      }
    }
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    expect(uncaught).toEqual([])
  },
)
