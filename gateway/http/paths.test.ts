import { describe, expect, test } from 'vitest'
import { message, sharedGateway, startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { answersIn, openSocket, type RawAnswer, requestBytes } from '../test/test-socket.ts'

const PREFIX = '/api/integrations/v1/widget'

async function answerTo({ port }: TestGateway, bytes: string): Promise<RawAnswer> {
  const last = bytes.replace('\r\nHost: x\r\n', '\r\nHost: x\r\nConnection: close\r\n')
  const [answer] = answersIn(await openSocket(port, last, { allowHalfOpen: false }).closed)
  return answer!
}

/** Sends a request target unchanged. `fetch` would normalise it. */
const raw = (method: string, target: string) => requestBytes(method, '/TARGET').replace(`${PREFIX}/TARGET`, target)

const codeOf = ({ body }: RawAnswer) => (body === '' ? undefined : JSON.parse(body).code)

/** For cases that leave no trace in a gateway. */
const shared = sharedGateway()

describe('path spelled differently from its route', () => {
  test.each([
    '/x/../config/pk_demo',
    '/./config/pk_demo',
    '/config/../config/pk_demo',
    '/x/%2e%2e/config/pk_demo',
    '/x/%2E%2E/config/pk_demo',
    '/x/.%2e/config/pk_demo',
    '//config/pk_demo',
    '/config//pk_demo',
    '/config/pk_demo/',
    '/config/pk_demo//',
    '/config/pk_demo/..',
    '\\config\\pk_demo',
    '/config\\pk_demo',
    '/config/pk_demo;x=1/y',
    '/Config/pk_demo',
    '/config%2fpk_demo',
    '/messages/',
    '/x/../messages',
    '/messages/%2e',
  ])('gets NotFound with every method: %s', async (path) => {
    const gateway = await shared()
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH']) {
      const answer = await answerTo(gateway, raw(method, `${PREFIX}${path}`))
      expect([method, answer.status], path).toEqual([method, 404])
      if (method !== 'HEAD') expect(codeOf(answer)).toBe('NotFound')
      expect(answer.head).not.toMatch(/\r\nallow:/i)
    }
    expect(gateway.core.count('getConfig')).toBe(0)
  })

  test.each([
    `${PREFIX}/config/pk_demo`,
    `${PREFIX}/%63onfig/pk_demo`,
    `${PREFIX}/config/pk%5Fdemo`,
    `http://x${PREFIX}/config/pk_demo`,
  ])('is served like the route if the decoded path is the same: %s', async (target) => {
    const gateway = await shared()
    expect((await answerTo(gateway, raw('GET', target))).status).toBe(200)
    const wrong = await answerTo(gateway, raw('PUT', target))
    expect([wrong.status, codeOf(wrong)]).toEqual([405, 'MethodNotAllowed'])
    expect(wrong.head).toContain('\r\nallow: GET, HEAD, OPTIONS\r\n')
    const options = await answerTo(gateway, raw('OPTIONS', target))
    expect(options.status).toBe(204)
  })

  test('also gets NotFound outside the widget API', async () => {
    const gateway = await startTestGateway()
    for (const target of [
      '/x/../livez',
      '//livez',
      '/livez/',
      '/%2e/livez',
      '/x/../api/leads/lead_1/delivery-attempts',
    ]) {
      for (const method of ['GET', 'POST'])
        expect((await answerTo(gateway, raw(method, target))).status, target).toBe(404)
    }
    expect((await answerTo(gateway, raw('OPTIONS', '*'))).status).toBe(404)
  })
})

describe('POST request without a body', () => {
  const post = (path: string, more: string, body = '') => `${requestBytes('POST', path, { more })}${body}`
  const JSON_TYPE = 'Content-Type: application/json\r\n'

  test.each([
    ['no length and no type', '', ''],
    ['no length and JSON', JSON_TYPE, ''],
    ['no length and another type', 'Content-Type: text/plain\r\n', ''],
    ['no length and no valid type', 'Content-Type: x\r\n', ''],
    ['a length of nothing', 'Content-Length: 0\r\n', ''],
    ['a length of nothing and JSON', `${JSON_TYPE}Content-Length: 0\r\n`, ''],
    ['a length of nothing and another type', 'Content-Type: text/plain\r\nContent-Length: 0\r\n', ''],
    ['a length of zeros', 'Content-Length: 000\r\n', ''],
    ['no chunk', 'Transfer-Encoding: chunked\r\n', '0\r\n\r\n'],
    ['no chunk and JSON', `${JSON_TYPE}Transfer-Encoding: chunked\r\n`, '0\r\n\r\n'],
    ['no chunk and another type', 'Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'],
    ['no chunk and a trailer', 'Transfer-Encoding: chunked\r\n', '0\r\nA: b\r\n\r\n'],
  ])(
    'gets ValidationFailed, or RouteNotAdvertised from a form route that is switched off: %s',
    async (_name, more, body) => {
      const gateway = await shared()
      for (const path of ['/messages', '/sessions', '/sessions/close', '/typing', '/context/page', '/forms/pre-chat']) {
        const answer = await answerTo(gateway, post(path, more, body))
        // The installation advertises no forms. The gateway checks this before it validates the body.
        const code = path === '/forms/pre-chat' ? 'RouteNotAdvertised' : 'ValidationFailed'
        expect([path, codeOf(answer)]).toEqual([path, code])
      }
    },
  )

  test('gets IdempotencyKeyInvalid if its key is also invalid', async () => {
    const gateway = await startTestGateway()
    const bytes = post('/messages', '').replace('Idempotency-Key: op-1', 'Idempotency-Key: not allowed')
    expect(codeOf(await answerTo(gateway, bytes))).toBe('IdempotencyKeyInvalid')
  })

  test.each([
    ['no type', ''],
    ['another type', 'Content-Type: text/plain\r\n'],
    ['no valid type', 'Content-Type: x\r\n'],
  ])('gets ValidationFailed, whereas one with a body and %s gets UnsupportedMediaType', async (_name, type) => {
    const gateway = await shared()
    const json = JSON.stringify(message())
    const broken = (bytes: string) => bytes.replace('Idempotency-Key: op-1', 'Idempotency-Key: not allowed')
    const length = post('/messages', `${type}Content-Length: ${json.length}\r\n`, json)
    const chunks = post(
      '/messages',
      `${type}Transfer-Encoding: chunked\r\n`,
      `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`,
    )
    for (const bytes of [length, chunks, broken(length), broken(chunks)])
      expect(codeOf(await answerTo(gateway, bytes))).toBe('UnsupportedMediaType')
  })

  test('gets ValidationFailed at the request timeout if it announces chunks and sends none', async () => {
    const env = { REQUEST_TIMEOUT_MS: '1000' }
    const gateway = await startTestGateway({ env })
    const client = openSocket(gateway.port, post('/messages', 'Transfer-Encoding: chunked\r\n'))
    await expect.poll(client.isEnded, { timeout: 10_000 }).toBe(true)
    expect(codeOf(answersIn(client.text())[0]!)).toBe('ValidationFailed')
  })

  test('gets ValidationFailed from the route for screenshot uploads', async () => {
    const gateway = await startTestGateway()
    const path = '/commands/screenshots/scr_1/upload'
    expect(codeOf(await answerTo(gateway, post(path, 'Content-Length: 1\r\n', 'x')))).toBe('UnsupportedMediaType')
    expect((await answerTo(gateway, post(path, 'Content-Type: image/png\r\nContent-Length: 1\r\n', 'x'))).status).toBe(
      201,
    )
    expect(codeOf(await answerTo(gateway, post(path, '')))).toBe('ValidationFailed')
  })
})
