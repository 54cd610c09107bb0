import { expect, test } from 'vitest'
import { sharedGateway, startTestGateway, type TestGateway } from '../test/test-gateway.ts'

const answers: [name: string, ask: (gateway: TestGateway) => Promise<Response>][] = [
  ['a success', ({ call }) => call('GET', '/messages')],
  ['a configuration', ({ call }) => call('GET', '/config/pk_demo')],
  ['a stream', ({ call }) => call('GET', '/events')],
  ['a failure of a check', ({ call }) => call('GET', '/messages', { headers: { authorization: null } })],
  ['a failure of the core', ({ call }) => call('GET', '/config/pk_none')],
  ['a failure of a schema', ({ call }) => call('POST', '/messages', { body: {} })],
  ['broken JSON', ({ call }) => call('POST', '/messages', { body: '{' })],
  ['an unknown path', ({ url }) => fetch(`${url}/nowhere`)],
  ['an unknown method', ({ call }) => call('PUT', '/messages')],
  ['a bad URL', ({ call }) => call('GET', '/config/%zz')],
  ['a preflight', ({ call }) => call('OPTIONS', '/messages', { headers: { 'access-control-request-method': 'POST' } })],
  ['health', ({ url }) => fetch(`${url}/livez`)],
  ['a lead route', ({ url }) => fetch(`${url}/api/leads/lead_1/delivery-attempts`, { method: 'POST' })],
  [
    'a call of the console',
    ({ url }) => fetch(`${url}/rpc/service.messaging.v1.MessagingService/ListMessages`, { method: 'POST' }),
  ],
  ['the API’s page', ({ url }) => fetch(`${url}/docs/`)],
  ['the API’s document', ({ url }) => fetch(`${url}/docs/openapi.json`)],
]

/** For cases that leave no trace in a gateway. */
const shared = sharedGateway()

test.each(answers)('the answer has the security headers: %s', async (name, ask) => {
  const { headers } = await ask(await shared())
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('x-frame-options')).toBe('DENY')
  if (/success|configuration|stream/.test(name))
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  const policy = headers.get('content-security-policy')
  expect(policy).toMatch(/^default-src 'none'/)
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toMatch(/unsafe-eval|script-src[^;]*unsafe-inline|\*/)
  expect(headers.get('x-correlation-id')).toMatch(/^[\w.-]{1,64}$/)
  // Answers must set no cookies, allow no browser credentials and not describe the server.
  for (const unset of ['set-cookie', 'access-control-allow-credentials', 'x-powered-by', 'server'])
    expect([unset, headers.get(unset)]).toEqual([unset, null])
})

test('an answer to an unparsable request has the same security headers', async () => {
  const { raw, call } = await startTestGateway()
  const head = (await raw('GET / HTTP/9\r\n\r\n')).split('\r\n\r\n', 1)[0]!
  const bare = new Headers(
    head
      .split('\r\n')
      .slice(1)
      .map((line): [string, string] => line.split(': ', 2) as [string, string]),
  )
  const { headers } = await call('GET', '/messages')
  const named = [...headers.keys()].filter((name) =>
    /^(content-security|cross-origin|referrer|x-(content|frame|d|p))/.test(name),
  )
  expect(named.length).toBeGreaterThan(4)
  for (const name of named) expect([name, bare.get(name)]).toEqual([name, headers.get(name)])
})

test('answers with private data have `Cache-Control: no-store`', async () => {
  const gateway = await startTestGateway()
  for (const [, ask] of answers.filter(([name]) => /success|stream|failure|lead|console/.test(name))) {
    expect((await ask(gateway)).headers.get('cache-control')).toContain('no-store')
  }
  const body = { publicSiteKey: 'pk_demo', clientInstanceId: 'browser-1' }
  expect((await gateway.call('POST', '/sessions', { body })).headers.get('cache-control')).toBe('no-store')
})
