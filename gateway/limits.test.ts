import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { SITE } from './test-core.ts'
import { message, startTestGateway, type TestGateway } from './test-gateway.ts'

const PREFIX = '/api/integrations/v1/widget'
const HEAD = `Host: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\n`

/** A connection that sends text, and everything that it receives until it closes. */
function open({ port }: TestGateway, text: string, everyMs?: number) {
  const socket: Socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let answer = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    answer += chunk
  })
  socket.on('error', () => {})
  if (everyMs === undefined) socket.write(text)
  else {
    let at = 0
    const drip = setInterval(() => socket.write(text[at++ % text.length]!), everyMs)
    socket.on('close', () => clearInterval(drip))
  }
  return { socket, closed: new Promise<string>((resolve) => socket.on('close', () => resolve(answer))) }
}

const envelopeOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('{')))

test('oversized headers are rejected with the envelope', async () => {
  const gateway = await startTestGateway({ env: { HEADERS_MAX_BYTES: '4096' } })
  const get = `GET ${PREFIX}/config/pk_demo HTTP/1.1\r\n${HEAD}Connection: close\r\n`
  expect(await open(gateway, `${get}A: ${'a'.repeat(3000)}\r\n\r\n`).closed).toMatch(/^HTTP\/1.1 200 /)
  const refused = await open(gateway, `${get}A: ${'a'.repeat(5000)}\r\n\r\n`).closed
  expect(envelopeOf(refused)).toMatchObject({ code: 'ValidationFailed', issues: [{ path: '', rule: 'headerSize' }] })
})

test.each([
  ['says nothing', ''],
  [
    'sends its headers byte by byte',
    `GET ${PREFIX}/config/pk_demo HTTP/1.1\r\nHost: x\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaaa`,
  ],
])('a connection that %s is closed at the timeout', async (_, text) => {
  const gateway = await startTestGateway({ env: { HEADERS_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '3000' } })
  const answer = await open(gateway, text, text === '' ? undefined : 100).closed
  expect(envelopeOf(answer)).toMatchObject({ code: 'ValidationFailed', issues: [{ path: '', rule: 'timeout' }] })
})

test('an incomplete body times out, and other requests are served meanwhile', async () => {
  const gateway = await startTestGateway({ env: { HEADERS_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '2000' } })
  const head = `POST ${PREFIX}/sessions HTTP/1.1\r\n${HEAD}Idempotency-Key: op-1\r\nContent-Type: application/json\r\n`
  const slow = open(gateway, `${head}Content-Length: 10000\r\n\r\n{`)
  expect((await gateway.call('GET', '/messages')).status).toBe(200)
  expect(envelopeOf(await slow.closed)).toMatchObject({ code: 'ValidationFailed', retryable: false })
})

test('connections per address are limited, and closing one frees a slot', async () => {
  const gateway = await startTestGateway({ env: { CONNECTIONS_PER_ADDRESS: '3' } })
  const held = [1, 2, 3].map(() => open(gateway, `GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`))
  const refused = await open(gateway, '').closed
  expect(refused).toMatch(/^HTTP\/1.1 429 .*\r\nRetry-After: 1\r\n/s)
  expect(envelopeOf(refused)).toMatchObject({ code: 'RateLimited', retryable: true, retryAfter: 1 })
  held[0]!.socket.destroy()
  await expect
    .poll(() => open(gateway, 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n').closed)
    .toMatch(/^HTTP\/1.1 200 /)
})

test('connections of trusted proxies are not limited', async () => {
  const gateway = await startTestGateway({ env: { CONNECTIONS_PER_ADDRESS: '1', TRUST_PROXY: '1' } })
  const answers = [1, 2, 3].map(() => open(gateway, `GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`))
  for (const { socket } of answers) await new Promise((resolve) => socket.once('data', resolve))
})

test('calls above the limit get 503 at once, and running calls finish', async () => {
  const gateway = await startTestGateway({ env: { CORE_CALLS_MAX: '2' } })
  await gateway.call('GET', '/messages')
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  gateway.core.onList = () => gate
  const waiting = [gateway.call('GET', '/messages'), gateway.call('GET', '/messages')]
  await expect.poll(() => gateway.core.count('listVisitorMessages')).toBe(3)
  const shed = await gateway.call('GET', '/messages')
  expect([shed.status, shed.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await shed.json()).toMatchObject({ code: 'ServiceUnavailable', retryable: true, retryAfter: 1 })
  // Sends have their own limit.
  expect((await gateway.call('POST', '/messages', { body: message() })).status).toBe(202)
  release()
  for (const each of waiting) expect((await each).status).toBe(200)
  expect((await gateway.call('GET', '/messages')).status).toBe(200)
})
