import { describe, expect, test } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { refusal } from '../test/core-answers.ts'
import { SITE } from '../test/test-core.ts'
import { startTestGateway, type TestGateway } from '../test/test-gateway.ts'

const create = { publicSiteKey: 'pk_demo', clientInstanceId: 'i' }
const BEHIND_PROXY = { TRUST_PROXY: '1' }
const address = (last: number) => ({ 'x-forwarded-for': `192.0.2.${last}` })

/** Returns the number of calls to the core that only check an origin, a grant or a site key. */
const checkCalls = ({ core }: TestGateway) =>
  ['checkOrigin', 'authorizeGrant', 'getConfig', 'createSession'].reduce((sum, method) => sum + core.count(method), 0)

const tally = (statuses: number[]) =>
  Object.fromEntries([...new Set(statuses)].sort().map((each) => [each, statuses.filter((one) => one === each).length]))

/** Makes calls one after another and returns their statuses. */
async function statusesOf(count: number, call: (index: number) => Promise<Response>) {
  const statuses: number[] = []
  for (let index = 0; index < count; index++) {
    const response = await call(index)
    await response.text()
    statuses.push(response.status)
  }
  return statuses
}

const REFUSED: [string, number, (gateway: TestGateway, index: number) => Promise<Response>][] = [
  [
    'an unknown origin',
    403,
    ({ call }, index) => call('GET', '/messages', { headers: { origin: `https://${index}.evil.example` } }),
  ],
  ['a missing origin', 403, ({ call }) => call('GET', '/messages', { headers: { origin: null } })],
  [
    'a preflight of an unknown origin',
    403,
    ({ call }, index) =>
      call('OPTIONS', '/messages', {
        headers: { origin: `https://${index}.evil.example`, 'access-control-request-method': 'POST' },
      }),
  ],
  [
    'a forged grant',
    401,
    ({ call }, index) => call('GET', '/messages', { headers: { authorization: `Bearer forged-${index}` } }),
  ],
  ['a missing grant', 401, ({ call }) => call('GET', '/messages', { headers: { authorization: null } })],
  [
    'a forged grant on a route that answers closed sessions',
    401,
    ({ call }, index) =>
      call('DELETE', '/sessions/identify', {
        headers: { authorization: `Bearer forged-${index}`, 'idempotency-key': 'k' },
      }),
  ],
  ['an unknown site key', 404, ({ call }, index) => call('GET', `/config/pk_${index}`)],
]

describe('limit of refused requests per address', () => {
  test.each(someOf(REFUSED, 1))(
    'answers 429 without a call to the core after 120 refusals in a minute: %s',
    async (_name, status, refused) => {
      const gateway = await startTestGateway()
      // A core accepts the origin and the grant, so the limit does not apply to them later.
      expect((await gateway.call('GET', '/messages')).status).toBe(200)
      const statuses = await statusesOf(120, (index) => refused(gateway, index))
      expect(tally(statuses)).toEqual({ [status]: 120 })
      const before = checkCalls(gateway)
      expect(tally(await statusesOf(30, (index) => refused(gateway, 1_000 + index)))).toEqual({ 429: 30 })
      expect(checkCalls(gateway)).toBe(before)
      gateway.clock.advance(60_000)
      expect((await refused(gateway, 2_000)).status).toBe(status)
    },
  )

  test.each(someOf(REFUSED, 1))('applies to concurrent requests: %s', async (_name, status, refused) => {
    const gateway = await startTestGateway()
    expect((await gateway.call('GET', '/messages')).status).toBe(200)
    const before = checkCalls(gateway)
    const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => refused(gateway, index)))
    expect(tally(answers.map((answer) => answer.status))).toEqual({ [status]: 120, 429: 80 })
    expect(checkCalls(gateway) - before).toBeLessThanOrEqual(120)
  })

  test('applies if all requests have the same invalid grant', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '12' } })
    const forged = () => gateway.call('GET', '/messages', { headers: { authorization: 'Bearer forged' } })
    const answers = await Promise.all(Array.from({ length: 20 }, forged))
    expect(tally(answers.map(({ status }) => status))).toEqual({ 401: 12, 429: 8 })
  })

  test('does not affect requests of another address', async () => {
    const gateway = await startTestGateway({ env: { ...BEHIND_PROXY, RATE_LIMIT_REFUSALS_PER_MINUTE: '3' } })
    const forged = (last: number) =>
      gateway.call('GET', '/messages', { headers: { ...address(last), authorization: 'Bearer forged' } })
    expect(tally(await statusesOf(4, () => forged(1)))).toEqual({ 401: 3, 429: 1 })
    expect((await forged(2)).status).toBe(401)
  })

  test('does not affect origins, grants and site keys that a core has accepted before', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '1' } })
    const { call, core } = gateway
    expect((await call('GET', '/config/pk_demo')).status).toBe(200)
    expect((await call('POST', '/sessions', { body: create })).status).toBe(201)
    expect((await call('GET', '/messages')).status).toBe(200)
    expect((await call('GET', '/messages', { headers: { authorization: 'Bearer forged' } })).status).toBe(401)
    gateway.clock.advance(6_000)
    expect((await call('GET', '/config/pk_demo')).status).toBe(200)
    expect((await call('POST', '/sessions', { body: create })).status).toBe(201)
    expect((await call('GET', '/messages')).status).toBe(200)
    core.grants.set('grant-2', 'ok')
    const other = { authorization: 'Bearer grant-2' }
    expect((await call('GET', '/messages', { headers: other })).status).toBe(429)
    gateway.clock.advance(60_000)
    expect((await call('GET', '/messages', { headers: other })).status).toBe(200)
  })

  test('counts a request whose grant was accepted before and has been revoked', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '3' } })
    expect((await gateway.call('GET', '/messages')).status).toBe(200)
    gateway.core.grants.set('grant-1', 'SessionRevoked')
    expect(tally(await statusesOf(6, () => gateway.call('GET', '/messages')))).toMatchObject({ 403: 4, 429: 2 })
  })

  test('does not count requests that fail because no core is reachable', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '1' } })
    gateway.core.down = true
    expect(tally(await statusesOf(5, () => gateway.call('GET', '/messages')))).toEqual({ 503: 5 })
    gateway.core.down = false
    gateway.clock.advance(10_000)
    expect((await gateway.call('GET', '/messages')).status).toBe(200)
  })

  test('applies after earlier checks, and answers with the error envelope and, for an allowed origin, CORS headers', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '1' } })
    const { call } = gateway
    const authorization = 'Bearer forged'
    await call('GET', '/messages', { headers: { authorization } })
    const limited = await call('POST', '/messages', {
      headers: { authorization, 'content-type': 'text/plain' },
      body: '{',
    })
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '60'])
    expect(limited.headers.get('access-control-allow-origin')).toBe(SITE)
    expect(limited.headers.get('x-correlation-id')).not.toBeNull()
    expect(await limited.json()).toEqual({
      code: 'RateLimited',
      retryable: true,
      terminal: false,
      retryAfter: 60,
      correlationId: limited.headers.get('x-correlation-id'),
    })
    const codeOf = async (path: string, headers: Record<string, string | null>) =>
      ((await (await call('GET', path, { headers })).json()) as { code: string }).code
    expect(await codeOf('/messages', { authorization, 'x-service-widget-version': null })).toBe(
      'WidgetVersionUnsupported',
    )
    expect(await codeOf('/messages?token=x', { authorization })).toBe('CredentialInUrl')
    expect(await codeOf('/nowhere', {})).toBe('NotFound')
    const foreign = await call('GET', '/messages', { headers: { origin: 'https://evil.example' } })
    expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([429, null])
  })

  test('counts a request from an unknown origin to an unknown path', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '2' } })
    const nowhere = (index: number) =>
      gateway.call('GET', '/nowhere', { headers: { origin: `https://${index}.evil.example` } })
    expect(tally(await statusesOf(10, nowhere))).toEqual({ 404: 10 })
    expect(gateway.core.count('checkOrigin')).toBe(2)
  })

  test('counts a request whose origin the installation does not allow', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '2' } })
    const statuses = await statusesOf(5, async () => {
      gateway.core.origins.add('https://other.example')
      await gateway.call('GET', '/messages', { headers: { origin: 'https://other.example' } })
      gateway.core.refuseNext = refusal('OriginNotAllowed')
      const answer = await gateway.call('GET', '/config/pk_other', { headers: { origin: SITE } })
      gateway.core.refuseNext = undefined
      return answer
    })
    expect(statuses).toContain(429)
  })
})

describe('X-Forwarded-For', () => {
  const warnings = ({ lines }: TestGateway) => lines.filter((line) => line.includes('TRUST_PROXY'))

  test('causes one warning if no proxy is trusted', async () => {
    const gateway = await startTestGateway()
    await gateway.call('GET', '/messages')
    expect(warnings(gateway)).toHaveLength(0)
    for (let index = 0; index < 3; index++) await gateway.call('GET', '/messages', { headers: address(index) })
    expect(warnings(gateway)).toHaveLength(1)
    expect(JSON.parse(warnings(gateway)[0]!)).toMatchObject({ level: 40 })
    expect(warnings(gateway)[0]).not.toContain('192.0.2')
  })

  test('causes no warning behind a trusted proxy', async () => {
    const gateway = await startTestGateway({ env: BEHIND_PROXY })
    await gateway.call('GET', '/messages', { headers: address(1) })
    expect(warnings(gateway)).toHaveLength(0)
  })
})
