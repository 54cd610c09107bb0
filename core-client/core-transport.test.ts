import { randomBytes } from 'node:crypto'
import { createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ConnectError, createClient } from '@connectrpc/connect'
import { afterEach, describe, expect, it } from 'vitest'
import { PeerService } from '#proto/peer/v1/peer_pb.js'
import { createCoreTransport } from './core-transport.ts'

const closers: (() => unknown)[] = []
let uncaught: unknown[]
const onUncaught = (error: unknown) => uncaught.push(error)

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  process.off('uncaughtExceptionMonitor', onUncaught)
})

async function listen(server: Server) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Servers that do not run a core. The key says what the server does. */
const strangers: Record<string, () => Server> = {
  'sends random bytes': () => createTcpServer((socket) => void socket.on('error', () => {}).write(randomBytes(10_000))),
  'answers in HTTP/1.1': () =>
    createTcpServer((socket) => void socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n')),
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
    createHttp2Server().on('stream', (stream) => {
      stream.on('error', () => {}).respond({ ':status': 200, 'content-type': 'application/proto' })
      const fill = () => {
        while (!stream.destroyed && stream.write(Buffer.alloc(60_000)));
      }
      stream.on('drain', fill)
      fill()
    }) as unknown as Server,
}

describe('a transport to a server that is not a core', () => {
  it.each(Object.keys(strangers))('rejects calls and keeps the process alive when the server %s', async (name) => {
    uncaught = []
    process.on('uncaughtExceptionMonitor', onUncaught)
    const baseUrl = await listen((strangers[name] as () => Server)())
    const metrics = { linkFrames: { observe: () => {} }, linkCalls: { inc: () => {} } }
    for (const links of [undefined, metrics])
      for (let turns = 0; turns < 4; turns++) {
        const transport = createCoreTransport(baseUrl, undefined, links)
        const client = createClient(PeerService, transport)
        const call = () => client.announceEvents({}, { timeoutMs: 200, headers: { authorization: 'Bearer none' } })
        const outcomes = [1, 2, 3].map(() => call().then(() => 'answered', ConnectError.from))
        for (const outcome of outcomes) {
          expect(await outcome).toBeInstanceOf(ConnectError)
          for (let turn = 0; turn < turns; turn++) await nextTurn()
          transport.cut()
        }
      }
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    expect(uncaught).toEqual([])
  })
})
