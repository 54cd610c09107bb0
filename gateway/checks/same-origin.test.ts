import { describe, expect, test } from 'vitest'
import { sharedGateway, startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { openSocket } from '../test/test-socket.ts'

const BASE = '/api/integrations/v1/widget'
const own = { origin: null, 'sec-fetch-site': 'same-origin' }

/** Starts a gateway. Allows its own origin, and two origins that only a proxy knows. */
const startOwnGateway = async (env: Record<string, string> = {}) => withOwnOrigin(await startTestGateway({ env }))
/** For cases that leave no trace in a gateway. */
const shared = sharedGateway()
const sharedOwnGateway = async () => withOwnOrigin(await shared())

function withOwnOrigin(gateway: TestGateway) {
  gateway.core.origins.add(gateway.url).add('https://shop.example').add('https://other.example')
  gateway.core.siteKeys.add('pk_demo')
  return {
    ...gateway,
    originsAsked: () =>
      gateway.core.calls.flatMap(({ method, request }) =>
        method === 'checkOrigin' ? [(request as { origin: string }).origin] : [],
      ),
    /** Sends a request with this `Host`, which fetch cannot set. */
    async from(host: string, { method = 'GET', site = 'same-origin', more = '' } = {}) {
      const text = await openSocket(
        gateway.port,
        `${method} ${BASE}/config/pk_demo HTTP/1.1\r\nHost: ${host}\r\nX-Service-Widget-Version: 1.0\r\n` +
          `Sec-Fetch-Site: ${site}\r\n${more}Connection: close\r\n\r\n`,
        { allowHalfOpen: false },
      ).closed
      return {
        status: Number(text.split(' ')[1]),
        cors: /^access-control-allow-origin: (.*)\r$/im.exec(text)?.[1],
      }
    },
  }
}

describe('a GET without Origin from a page of this host', () => {
  test('is answered like one with the own origin, and its grant is bound to that origin', async () => {
    const { call, core, url } = await startOwnGateway()
    for (const path of ['/config/pk_demo', '/messages']) {
      const response = await call('GET', path, { headers: own })
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, url])
    }
    expect((await call('HEAD', '/config/pk_demo', { headers: own })).status).toBe(200)
    const { request } = core.calls.findLast(({ method }) => method === 'listVisitorMessages')!
    expect(request).toMatchObject({ credentials: { origin: url } })
  })

  test.each(['cross-site', 'same-site', 'none', 'Same-Origin', 'same-origin, cross-site', ''])(
    'is refused with Sec-Fetch-Site: %s',
    async (site) => {
      const { from, port } = await sharedOwnGateway()
      expect(await from(`127.0.0.1:${port}`, { site })).toEqual({ status: 403, cors: undefined })
    },
  )

  test('is refused without Sec-Fetch-Site, and with an Origin that is not allowed', async () => {
    const { call } = await sharedOwnGateway()
    expect((await call('GET', '/messages', { headers: { origin: null } })).status).toBe(403)
    for (const origin of ['null', 'https://evil.example', ''])
      expect((await call('GET', '/messages', { headers: { ...own, origin } })).status).toBe(403)
  })

  test('does not open POST, DELETE and preflights', async () => {
    const { call, from, port } = await sharedOwnGateway()
    const body = { publicSiteKey: 'pk_demo', clientInstanceId: 'browser' }
    expect((await call('POST', '/sessions', { headers: own, body })).status).toBe(403)
    const preflight = { method: 'OPTIONS', more: 'Access-Control-Request-Method: GET\r\n' }
    expect(await from(`127.0.0.1:${port}`, preflight)).toEqual({ status: 403, cors: undefined })
  })

  test.each([
    ['another port', '127.0.0.1:1'],
    ['no port', '127.0.0.1'],
    ['another host', 'evil.example'],
    ['user info', 'shop.example@evil.example'],
    ['user info of an allowed host', 'evil.example@shop.example'],
    ['a path', 'shop.example/x'],
    ['a fragment', 'shop.example#x'],
    ['a list', 'shop.example,evil.example'],
    ['a backslash', 'shop.example\\@evil.example'],
    ['nothing', ''],
  ])('is refused if Host has %s', async (_, host) => {
    const { from } = await sharedOwnGateway()
    expect((await from(host)).cors).toBeUndefined()
    expect([400, 403]).toContain((await from(host)).status)
  })

  test('is accepted if Host has upper case or the default port', async () => {
    const { from, originsAsked } = await startOwnGateway({ TRUST_PROXY: '1' })
    const more = 'X-Forwarded-Proto: https\r\n'
    const expected = { status: 200, cors: 'https://shop.example' }
    for (const host of ['shop.example', 'SHOP.Example', 'shop.example:443'])
      expect(await from(host, { more })).toEqual(expected)
    expect((await from('shop.example:80', { more })).status).toBe(403)
    expect(originsAsked()).toContain('https://shop.example:80')
  })

  test('has the scheme and host of a trusted proxy, and ignores those of other clients', async () => {
    const more = 'X-Forwarded-Proto: https\r\nX-Forwarded-Host: other.example\r\n'
    const trusted = await startOwnGateway({ TRUST_PROXY: 'loopback' })
    expect(await trusted.from('internal:8080', { more })).toEqual({ status: 200, cors: 'https://other.example' })
    for (const TRUST_PROXY of ['off', '10.0.0.0/8']) {
      const { from, port, url } = await startOwnGateway({ TRUST_PROXY })
      expect(await from('internal:8080', { more })).toEqual({ status: 403, cors: undefined })
      expect(await from(`127.0.0.1:${port}`, { more })).toEqual({ status: 200, cors: url })
    }
    for (const scheme of ['ftp', 'javascript', 'https://evil.example/?', 'file'])
      expect((await trusted.from('shop.example', { more: `X-Forwarded-Proto: ${scheme}\r\n` })).status).toBe(403)
  })

  test('counts as a refusal if the own origin is not allowed', async () => {
    const { from } = await startOwnGateway({ RATE_LIMIT_REFUSALS_PER_MINUTE: '2' })
    const statuses = []
    for (let port = 1; port <= 4; port++) statuses.push((await from(`127.0.0.1:${port}`)).status)
    expect(statuses).toEqual([403, 403, 429, 429])
  })

  test('shows a page of this host an error before the origin check', async () => {
    const { call, url } = await sharedOwnGateway()
    const response = await call('GET', '/unknown', { headers: own })
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([404, url])
  })
})
