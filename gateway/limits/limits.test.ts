import { once } from 'node:events'
import { expect, test } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { SITE } from '../test/test-core.ts'
import { message, startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { openSocket } from '../test/test-socket.ts'

const PREFIX = '/api/integrations/v1/widget'
const HEAD = `Host: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\n`

/** Opens a connection that sends the text at once, or one letter every `everyMs`. */
function open({ port }: TestGateway, text: string, everyMs?: number) {
  const connection = openSocket(port, everyMs === undefined ? text : '', { allowHalfOpen: false })
  if (everyMs !== undefined) {
    let at = 0
    const drip = setInterval(() => connection.socket.write(text[at++ % text.length]!), everyMs)
    connection.socket.on('close', () => clearInterval(drip))
  }
  return connection
}

const envelopeOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('{')))

test('a request with oversized headers is rejected with the error envelope', async () => {
  const gateway = await startTestGateway()
  const get = `GET ${PREFIX}/config/pk_demo HTTP/1.1\r\n${HEAD}Connection: close\r\n`
  expect(await open(gateway, `${get}A: ${'a'.repeat(15_000)}\r\n\r\n`).closed).toMatch(/^HTTP\/1.1 200 /)
  const refused = await open(gateway, `${get}A: ${'a'.repeat(17_000)}\r\n\r\n`).closed
  expect(envelopeOf(refused)).toMatchObject({ code: 'ValidationFailed', issues: [{ path: '', rule: 'headerSize' }] })
})

const shortTimeouts = { REQUEST_TIMEOUT_MS: '1000' }

test('a connection gets ValidationFailed with the rule `timeout` if its headers arrive too slowly', async () => {
  const gateway = await startTestGateway({ env: shortTimeouts })
  const text = `GET ${PREFIX}/config/pk_demo HTTP/1.1\r\nHost: x\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaaa`
  const answer = await open(gateway, text, 100).closed
  expect(envelopeOf(answer)).toMatchObject({ code: 'ValidationFailed', issues: [{ path: '', rule: 'timeout' }] })
})

itLong('a connection that sends no request is closed without an answer at the request timeout', async () => {
  const gateway = await startTestGateway({ env: shortTimeouts })
  expect(await open(gateway, '').closed).toBe('')
})

itLong('a first request that arrives while the gateway is busy gets no timeout error', async () => {
  const gateway = await startTestGateway({ env: shortTimeouts })
  const connected = once(gateway.gateway.server, 'connection')
  const { socket, closed } = open(gateway, '')
  await connected
  socket.write('GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const busyUntil = performance.now() + 2_500
  while (performance.now() < busyUntil);
  expect(await closed).not.toContain('ValidationFailed')
})

itLong('a request whose body does not arrive times out, and other requests are served meanwhile', async () => {
  const gateway = await startTestGateway({ env: { REQUEST_TIMEOUT_MS: '2000' } })
  const head = `POST ${PREFIX}/sessions HTTP/1.1\r\n${HEAD}Idempotency-Key: op-1\r\nContent-Type: application/json\r\n`
  const slow = open(gateway, `${head}Content-Length: 10000\r\n\r\n{`)
  expect((await gateway.call('GET', '/messages')).status).toBe(200)
  expect(envelopeOf(await slow.closed)).toMatchObject({ code: 'ValidationFailed', retryable: false })
})

test('connections above the limit per address get 429, and a new one is accepted after one has closed', async () => {
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

test('a request gets 503 at once if the limit of calls to the cores is reached, and running calls finish', async () => {
  const gateway = await startTestGateway({ env: { CORE_CALLS_MAX: '1' } })
  await gateway.call('GET', '/messages')
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  gateway.core.onList = () => gate
  const waiting = gateway.call('GET', '/messages')
  await expect.poll(() => gateway.core.count('listVisitorMessages')).toBe(2)
  const shed = await gateway.call('GET', '/messages')
  expect([shed.status, shed.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await shed.json()).toMatchObject({ code: 'ServiceUnavailable', retryable: true, retryAfter: 1 })
  // A send is not rejected, because sends have their own limit.
  expect((await gateway.call('POST', '/messages', { body: message() })).status).toBe(202)
  release()
  expect((await waiting).status).toBe(200)
  expect((await gateway.call('GET', '/messages')).status).toBe(200)
})

test('a gateway whose calls to the cores are at the limit stays ready', async () => {
  const gateway = await startTestGateway({ env: { CORE_CALLS_MAX: '1' } })
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  gateway.core.onList = () => gate
  const waiting = gateway.call('GET', '/messages')
  await expect.poll(() => gateway.core.count('listVisitorMessages')).toBe(1)
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200)
  release()
  expect((await waiting).status).toBe(200)
})
