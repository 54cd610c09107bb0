import { describe, expect, test } from 'vitest'
import { refusal } from '../test/core-answers.ts'
import { message, sharedGateway, startTestGateway } from '../test/test-gateway.ts'

/** For cases that leave no trace in a gateway. */
const shared = sharedGateway()

describe('request checks', () => {
  test.each(['GrantInvalid', 'OriginMismatch', 'SessionExpired', 'SessionRevoked', 'VisitorBanned'] as const)(
    'answer the core’s error %s before errors of later checks, but after GrantMissing',
    async (code) => {
      const { call, core } = await startTestGateway()
      core.grants.set('grant-bad', code)
      const broken = { 'content-type': 'text/plain', 'idempotency-key': null }
      const refused = await call('POST', '/messages', {
        headers: { ...broken, authorization: 'Bearer grant-bad' },
        body: '{',
      })
      expect(await refused.json()).toMatchObject({ code, terminal: true, retryable: false })
      const missing = await call('POST', '/messages', { headers: { ...broken, authorization: 'Basic x' }, body: '{' })
      expect(await missing.json()).toMatchObject({ code: 'GrantMissing' })
    },
  )

  test('answer GrantExpired on every scoped route except the renewal, before errors of later checks', async () => {
    const { call, core } = await startTestGateway()
    core.grants.set('grant-1', 'GrantExpired')
    for (const path of ['/messages', '/typing', '/context/page', '/sessions/close', '/sessions/identify']) {
      const refused = await call('POST', path, { headers: { 'content-type': 'text/plain' }, body: '{' })
      expect([refused.status, await refused.json()]).toMatchObject([
        401,
        { code: 'GrantExpired', terminal: false, retryable: false },
      ])
    }
    expect(await (await call('GET', '/events')).json()).toMatchObject({ code: 'GrantExpired' })
    const body = { sessionId: 'ses_grant-1', renewalToken: 'r' }
    expect((await call('POST', '/sessions/renew', { body })).status).toBe(200)
    const invalid = await call('POST', '/sessions/renew', { body: { ...body, extra: 1 } })
    expect(await invalid.json()).toMatchObject({ code: 'ValidationFailed' })
  })

  test('reject a request whose key differs from the operation id, and do not count it against the rate limit', async () => {
    const { call } = await startTestGateway({ env: { RATE_LIMIT_SENDS_BURST: '1' } })
    for (let tries = 0; tries < 3; tries++) {
      const response = await call('POST', '/messages', { body: message('op-2') })
      expect(await response.json()).toMatchObject({ code: 'IdempotencyKeyMismatch' })
    }
    expect((await call('POST', '/messages', { body: message() })).status).toBe(202)
  })

  test.each([
    ['arrays', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
    ['objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
  ])('reject a page context of deeply nested %s', async (_, body) => {
    const { call } = await shared()
    const response = await call('POST', '/context/page', { body })
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'ValidationFailed' }])
  })

  test.each([
    ['limit=0', '/limit', 'minimum'],
    ['limit=101', '/limit', 'maximum'],
    ['limit=5.0', '/limit', 'type'],
    ['limit=', '/limit', 'type'],
    ['limit=1&limit=2', '/limit', 'type'],
    ['afterSequence=-1', '/afterSequence', 'type'],
    ['afterSequence=1&beforeSequence=2', '', 'not'],
    ['foo=1', '/foo', 'additionalProperties'],
  ])('reject the query %s', async (query, path, rule) => {
    const { call, core } = await shared()
    const response = await call('GET', `/messages?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'ValidationFailed', issues: [{ path, rule }] })
    expect(core.count('listVisitorMessages')).toBe(0)
  })

  test('replace a sequence above the uint32 range by the maximum of uint32', async () => {
    const { call, core } = await startTestGateway()
    expect((await call('GET', '/messages?afterSequence=99999999999999999999&limit=50')).status).toBe(200)
    expect(core.calls.at(-1)?.request).toMatchObject({ afterSequence: 0xffff_ffff, limit: 50 })
  })
})

describe('error envelope', () => {
  test('contains code and retryAfter of the core’s error, and the correlation id of the request', async () => {
    const { call, core } = await startTestGateway()
    core.refuseNext = undefined
    await call('GET', '/messages')
    core.refuseNext = refusal('OperationInProgress', { retryAfter: 1 })
    const response = await call('POST', '/sessions/renew', {
      headers: { 'x-correlation-id': 'trace-7' },
      body: { sessionId: 'ses_1', renewalToken: 'r' },
    })
    expect(response.status).toBe(409)
    expect(response.headers.get('x-correlation-id')).toBe('trace-7')
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(await response.json()).toEqual({
      code: 'OperationInProgress',
      retryable: true,
      terminal: false,
      retryAfter: 1,
      correlationId: 'trace-7',
    })
    expect(core.calls.at(-1)?.headers.get('x-correlation-id')).toBe('trace-7')
    expect(core.calls.at(-1)?.headers.get('authorization')).toBe('Bearer service-token-of-tests')
  })

  test.each(['Unauthenticated', 'PermissionDenied'] as const)(
    'is InternalError if the core rejects the service token (%s)',
    async (code) => {
      const { call, core } = await startTestGateway()
      await call('GET', '/messages')
      core.refuseNext = refusal(code)
      const response = await call('GET', '/messages')
      expect(response.status).toBe(500)
      expect(await response.json()).toMatchObject({ code: 'InternalError', retryable: true })
    },
  )

  test('hides the details of an unexpected error', async () => {
    const { call, core, lines } = await startTestGateway()
    await call('GET', '/messages')
    core.refuseNext = new TypeError('cannot read the secret grant-1')
    const text = await (await call('GET', '/messages')).text()
    expect(JSON.parse(text)).toMatchObject({ code: 'InternalError' })
    expect(text + lines.join('')).not.toContain('secret')
  })
})

test('the gateway logs one line per request without content of the request', async () => {
  const { call, lines } = await startTestGateway()
  await call('POST', '/messages', { body: message('op-1', { body: 'private words' }) })
  await call('GET', '/messages?token=hidden')
  const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')
  expect(requests).toMatchObject([
    { method: 'POST', route: '/api/integrations/v1/widget/messages', status: 202, sessionId: expect.any(String) },
    { method: 'GET', route: '/api/integrations/v1/widget/messages', status: 400, code: 'CredentialInUrl' },
  ])
  expect(requests[0]).not.toHaveProperty('code')
  expect(requests[0]).toHaveProperty('correlationId')
  expect(lines.join('')).not.toMatch(/private words|hidden|(?<!ses_)grant-1|shop\.example/)
})
