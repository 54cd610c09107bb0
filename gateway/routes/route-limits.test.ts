import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { refusal } from '../test/core-answers.ts'
import { createTestCore } from '../test/test-core.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'

const create = { publicSiteKey: 'pk_demo', clientInstanceId: 'browser-1' }

describe('rate limits', () => {
  test('allow a session ten sends at once and then one send every 2 s', async () => {
    const { call, clock } = await startTestGateway()
    const send = (id: string) => call('POST', '/messages', { headers: { 'idempotency-key': id }, body: message(id) })
    for (let sent = 0; sent < 10; sent++) expect((await send(`op-${sent}`)).status).toBe(202)
    const refused = await send('op-10')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('2')
    expect(await refused.json()).toMatchObject({ code: 'RateLimited', retryable: true, terminal: false, retryAfter: 2 })
    clock.advance(1_000)
    expect(await (await send('op-10')).json()).toMatchObject({ retryAfter: 1 })
    clock.advance(1_000)
    expect((await send('op-10')).status).toBe(202)
    expect((await call('GET', '/messages')).status).toBe(200)
  })

  test('count configuration and new sessions of an address separately and ignore X-Forwarded-For', async () => {
    const env = { RATE_LIMIT_CONFIG_PER_MINUTE: '1', RATE_LIMIT_SESSIONS_PER_MINUTE: '1' }
    const { call } = await startTestGateway({ env })
    const headers = (address: string) => ({ 'x-forwarded-for': address })
    expect((await call('GET', '/config/pk_demo', { headers: headers('192.0.2.1') })).status).toBe(200)
    expect((await call('POST', '/sessions', { headers: headers('192.0.2.2'), body: create })).status).toBe(201)
    expect((await call('GET', '/config/pk_demo', { headers: headers('192.0.2.3') })).status).toBe(429)
    expect((await call('POST', '/sessions', { headers: headers('192.0.2.4'), body: create })).status).toBe(429)
  })

  test('count clients behind a trusted proxy separately, IPv6 clients by their /64 network', async () => {
    const env = { RATE_LIMIT_CONFIG_PER_MINUTE: '1', TRUST_PROXY: '1' }
    const { call } = await startTestGateway({ env })
    const status = async (address: string) =>
      (await call('GET', '/config/pk_demo', { headers: { 'x-forwarded-for': address } })).status
    expect(await status('192.0.2.1')).toBe(200)
    expect(await status('192.0.2.2')).toBe(200)
    expect(await status('198.51.100.9, 192.0.2.1')).toBe(429)
    expect(await status('2001:db8:1:2::1')).toBe(200)
    expect(await status('2001:db8:1:2:ffff::9')).toBe(429)
    expect(await status('2001:db8:1:3::1')).toBe(200)
  })

  test('are multiplied by RATE_LIMIT_FACTOR', async () => {
    const { call } = await startTestGateway({ env: { RATE_LIMIT_FACTOR: '2', RATE_LIMIT_CALLS_PER_MINUTE: '1' } })
    const statuses = []
    for (let sent = 0; sent < 3; sent++) statuses.push((await call('GET', '/messages')).status)
    expect(statuses).toEqual([200, 200, 429])
  })
})

describe('while cores are unreachable', () => {
  test('requests get 503 at once, and /livez still answers 200', async () => {
    const { call, core, url } = await startTestGateway()
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    await call('GET', '/messages')
    core.down = true
    const response = await call('GET', '/messages')
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ code: 'ServiceUnavailable', retryable: true, retryAfter: 1 })
    expect((await fetch(`${url}/livez`)).status).toBe(200)
  })

  test('/readyz answers 503 with the error envelope', async () => {
    const core = createTestCore()
    core.down = true
    const { url } = await startTestGateway({ cores: [core] })
    const response = await fetch(`${url}/readyz`)
    expect([response.status, await response.json()]).toMatchObject([503, { code: 'ServiceUnavailable' }])
  })

  test('another core answers, and the failed core is used again after it has recovered', async () => {
    const cores = [createTestCore(), createTestCore()]
    const { call, clock } = await startTestGateway({ cores })
    cores[0]!.down = true
    for (let sent = 0; sent < 6; sent++) expect((await call('GET', '/messages')).status).toBe(200)
    expect((await call('POST', '/sessions', { body: create })).status).toBe(201)
    cores[0]!.down = false
    clock.advance(10_000)
    for (let sent = 0; sent < 4; sent++) await call('GET', '/messages')
    expect(cores[0]!.count('listVisitorMessages')).toBeGreaterThan(0)
  })

  test('a call with side effects is not repeated if a core may have received it', async () => {
    const cores = [createTestCore(), createTestCore()]
    const { call } = await startTestGateway({ cores })
    await call('GET', '/messages')
    for (const core of cores) core.calls.length = 0
    const broken = new ConnectError('reset', Code.Aborted)
    for (const core of cores) core.refuseNext = broken
    const response = await call('POST', '/sessions/renew', {
      body: { sessionId: 'ses_grant-1', renewalToken: 'renewal-1' },
    })
    expect(response.status).toBe(503)
    expect(cores[0]!.count('renewSession') + cores[1]!.count('renewSession')).toBe(1)
  })

  test('a call that a core answered with an error is not retried on another core', async () => {
    const cores = [createTestCore(), createTestCore()]
    const { call } = await startTestGateway({ cores })
    await call('GET', '/messages')
    for (const core of cores) core.refuseNext = refusal('ServiceUnavailable', { retryAfter: 4 })
    const response = await call('GET', '/messages')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '4'])
    expect(cores.filter((core) => core.refuseNext !== undefined)).toHaveLength(1)
  })
})
