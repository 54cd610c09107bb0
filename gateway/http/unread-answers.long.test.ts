import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../../test/support/until.ts'
import { MESSAGE } from '../test/core-answers.ts'
import { startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { requestBytes } from '../test/test-socket.ts'

const MIB = 1024 * 1024
/** More requests than the buffers of the system hold answers. */
const PIPELINED = 60

const scriptRequest = (encoding: string) =>
  `GET /docs/js/scalar.js HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${encoding}\r\n\r\n`

/** The requests with the largest answers of each kind. */
const requests = [
  ['the script of the API reference', scriptRequest('identity'), 4],
  ['the compressed script of the API reference', scriptRequest('gzip'), PIPELINED],
  ['the API description', 'GET /docs/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n', PIPELINED],
  ['a page of history', requestBytes('GET', '/messages'), PIPELINED],
] as const

/** Starts a gateway whose history pages have 256 KiB, and counts the unsent bytes of connections. */
async function startLargeGateway() {
  const gateway = await startTestGateway({ env: { RATE_LIMIT_FACTOR: '1000' } })
  const open = new Set<Socket>()
  gateway.gateway.server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  gateway.core.messages = Array.from({ length: 16 }, () => ({ ...MESSAGE, body: '😀'.repeat(4_000) }))
  const unsent = () => [...open].reduce((sum, { writableLength }) => sum + writableLength, 0)
  return { ...gateway, open, unsent }
}

/** Opens a connection that sends requests and reads nothing until `resume` is called. */
function askWithoutReading({ port }: TestGateway, request: string, times: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' }).pause()
  socket.on('error', () => {})
  socket.write(request.repeat(times))
  onTestFinished(() => void socket.destroy())
  return socket
}

describe('clients that do not read their answers', () => {
  test.each(requests)(
    'hold at most a mebibyte each, and are disconnected after 30 s: %s',
    async (_, request, times) => {
      const gateway = await startLargeGateway()
      const { open, unsent, clock } = gateway
      const clients = Array.from({ length: 10 }, () => askWithoutReading(gateway, request, times))
      await until('unsent bytes of each connection', () => {
        return open.size === 10 && [...open].every(({ writableLength }) => writableLength > 0)
      })
      expect(unsent()).toBeLessThanOrEqual(clients.length * MIB)
      clock.advance(28_000)
      expect(open.size).toBe(10)
      clock.advance(4_000)
      await until('the end of the connections', () => open.size === 0)
      expect(unsent()).toBe(0)
      expect((await fetch(`${gateway.url}/livez`)).status).toBe(200)
    },
  )

  test('stay connected while they read slowly, and get the whole answer', async () => {
    const gateway = await startLargeGateway()
    const { open, clock } = gateway
    const client = askWithoutReading(gateway, scriptRequest('identity'), 3)
    await until('unsent bytes', () => [...open].some(({ writableLength }) => writableLength > 0))
    let received = 0
    client.on('data', (bytes: Buffer) => {
      received += bytes.length
      client.pause()
    })
    const whole =
      3 *
      Number(
        (
          await fetch(`${gateway.url}/docs/js/scalar.js`, {
            method: 'HEAD',
            headers: { 'accept-encoding': 'identity' },
          })
        ).headers.get('content-length'),
      )
    expect(whole).toBeGreaterThan(9 * MIB)
    await until(
      'the answers',
      () => {
        client.resume()
        const [server] = open
        // The clock moves on only after the gateway has sent more, as it would for a slow client.
        if (server !== undefined && server.writableLength === 0) clock.advance(1_000)
        return received >= whole
      },
      1,
    )
    expect(open.size).toBeGreaterThan(0)
  })
})
