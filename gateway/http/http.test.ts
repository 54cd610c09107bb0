import { describe, expect, test } from 'vitest'
import { SITE } from '../test/test-core.ts'
import { message, sharedGateway, startTestGateway } from '../test/test-gateway.ts'
import { openSocket } from '../test/test-socket.ts'

const PREFIX = '/api/integrations/v1/widget'
const HEADERS = `Host: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\nAuthorization: Bearer grant-1\r\nIdempotency-Key: op-1\r\n`

/** Parses the error envelope of a raw answer. */
function envelopeOf(answer: string) {
  return JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1))
}

/** For cases that leave no trace in a gateway. */
const shared = sharedGateway()

describe('CORS', () => {
  test('a page of an allowed origin can read the errors that come before all checks', async () => {
    const { raw, gateway, port } = await startTestGateway()
    const request = `GET ${PREFIX}/events HTTP/1.1\r\nOrigin: ${SITE}\r\nConnection: close\r\n`
    const late = openSocket(port, request, { allowHalfOpen: false })
    await expect.poll(() => late.socket.bytesWritten).toBeGreaterThan(0)
    const withoutHost = await raw(`${request}\r\n`)
    const closed = gateway.close()
    late.socket.write('Host: x\r\n\r\n')
    const whileStopping = await late.closed
    await closed
    const allowed = new RegExp(`\\r\\naccess-control-allow-origin: ${SITE}\\r\\n`, 'i')
    for (const [answer, status] of [
      [withoutHost, 400],
      [whileStopping, 503],
    ] as const) {
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
      expect(answer).toMatch(allowed)
    }
  })

  test('an allowed origin is cached for 5 s, and longer while no core is reachable', async () => {
    const { call, core, clock } = await startTestGateway()
    const first = await call('GET', '/messages')
    expect(first.headers.get('timing-allow-origin')).toBe(SITE)
    await call('GET', '/messages')
    expect(core.count('checkOrigin')).toBe(1)
    clock.advance(5_000)
    core.down = true
    const response = await call('GET', '/messages')
    expect(response.status).toBe(503)
    expect(response.headers.get('access-control-allow-origin')).toBe(SITE)
    core.down = false
    core.origins.delete(SITE)
    clock.advance(5_000)
    expect(await (await call('GET', '/messages')).json()).toMatchObject({ code: 'OriginNotAllowed' })
  })
})

describe('paths and methods', () => {
  test('an unknown path answers NotFound to any request', async () => {
    const { url } = await shared()
    for (const path of ['/', '/nowhere', `${PREFIX}/nowhere`, '/livez/']) {
      const response = await fetch(`${url}${path}`, { method: 'POST', body: 'x', headers: { 'content-type': 'a/b' } })
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({ code: 'NotFound', retryable: false, terminal: false })
    }
  })

  test('a known path answers an unsupported method with 405 and the path’s methods in Allow', async () => {
    const { call, url } = await shared()
    const wrong = await call('DELETE', '/messages')
    expect(wrong.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST')
    expect(await wrong.json()).toMatchObject({ code: 'MethodNotAllowed' })
    expect((await call('HEAD', '/events')).status).toBe(405)
    expect((await call('GET', '/sessions/renew')).headers.get('allow')).toBe('OPTIONS, POST')
    const options = await fetch(`${url}/livez`, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
  })
})

describe('hostile requests', () => {
  test.each(['{', '', '{"a":1}}', '"\\ud800', '{"__proto__":{"x":1},"clientOperationId":"op-1"}'])(
    'a body with the invalid JSON %j gets ValidationFailed',
    async (body) => {
      const { call } = await shared()
      const response = await call('POST', '/messages', { body })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 'ValidationFailed', issues: [{ path: '', rule: 'json' }] })
    },
  )

  test('a body that is not UTF-8 gets ValidationFailed', async () => {
    const { raw } = await shared()
    const body = '{"a":"\xff"}'
    const answer = await raw(
      `POST ${PREFIX}/messages HTTP/1.1\r\n${HEADERS}Connection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    expect(envelopeOf(answer)).toMatchObject({ code: 'ValidationFailed', issues: [{ rule: 'json' }] })
  })

  test.each([65_537, 4 * 65_536])(
    'an oversized body of %i bytes gets 413 after it is read, and the connection stays open',
    async (size) => {
      const { raw } = await shared()
      const head = `POST ${PREFIX}/messages HTTP/1.1\r\n${HEADERS}Content-Type: application/json\r\n`
      const next = `GET ${PREFIX}/messages HTTP/1.1\r\n${HEADERS}Connection: close\r\n\r\n`
      const answer = await raw(`${head}Content-Length: ${size}\r\n\r\n${'x'.repeat(size)}${next}`)
      expect(answer).toMatch(/^HTTP\/1\.1 413 /)
      expect(answer).toContain('"code":"PayloadTooLarge"')
      expect(answer).toContain(`access-control-allow-origin: ${SITE}`)
      expect(answer).toMatch(/HTTP\/1\.1 200 /)
    },
  )

  test('a body above four times the limit gets 413 before it is read, and the connection is closed', async () => {
    const { raw } = await shared()
    const head = `POST ${PREFIX}/messages HTTP/1.1\r\n${HEADERS}Content-Type: application/json\r\n`
    const started = performance.now()
    const answer = await raw(`${head}Content-Length: ${100 * 65_536}\r\n\r\n${'x'.repeat(4 * 65_536 + 1)}`)
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer.toLowerCase()).toContain('connection: close')
    // The client sends only a part of the body. The answer must come before the request times out.
    expect(performance.now() - started).toBeLessThan(4_000)
  })

  test('a request that has a large body and no grant gets 401', async () => {
    const { call } = await shared()
    const response = await call('POST', '/messages', { headers: { authorization: null }, body: 'x'.repeat(200_000) })
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
  })

  test.each([
    ['bytes that are not HTTP', 'hello\r\n\r\n', 'http'],
    ['an overlong header', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 'headerSize'],
    ['no host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 'http'],
    ['an invalid length', `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n`, 'http'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 'http'],
  ])('a request with %s gets 400 with the error envelope', async (_name, bytes, rule) => {
    const { raw } = await shared()
    const answer = await raw(bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer.toLowerCase()).toContain('x-correlation-id: ')
    expect(envelopeOf(answer)).toMatchObject({ code: 'ValidationFailed', issues: [{ path: '', rule }] })
  })

  test('an unknown Expect header is ignored', async () => {
    const { raw } = await shared()
    expect(await raw('GET /livez HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\nConnection: close\r\n\r\n')).toMatch(
      / 200 /,
    )
  })

  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])(
    'the content type %s is accepted as JSON',
    async (type) => {
      const { call } = await shared()
      expect((await call('POST', '/messages', { headers: { 'content-type': type }, body: message() })).status).toBe(202)
    },
  )

  test.each(['text/plain', 'application/json; charset=latin1', 'application/jsonp', 'multipart/form-data'])(
    'the content type %s is rejected',
    async (type) => {
      const { call } = await shared()
      const response = await call('POST', '/messages', { headers: { 'content-type': type }, body: message() })
      expect(await response.json()).toMatchObject({ code: 'UnsupportedMediaType' })
    },
  )
})
