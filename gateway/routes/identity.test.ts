import { describe, expect, it } from 'vitest'
import { GRANT, SITE } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'

const assertion = { assertion: 'grant-1' }
const keyed = { headers: { 'idempotency-key': 'op-1' } }

describe('POST /sessions/identify', () => {
  it('forwards the assertion to the core and answers with session content', async () => {
    const { call, core } = await startTestGateway()
    const answer = await call('POST', '/sessions/identify', { body: assertion })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await answer.json()).toMatchObject({
      sessionId: 'ses_grant-1',
      identity: { state: 'verified', displayName: 'Ada' },
      continuity: { state: 'continued' },
    })
    expect(core.calls.at(-1)).toMatchObject({
      method: 'identifyVisitor',
      request: { assertion: 'grant-1', idempotencyKey: 'op-1', credentials: { accessGrant: GRANT, origin: SITE } },
    })
  })

  it('sets Idempotency-Replayed if the core repeats an earlier answer', async () => {
    const { call } = await startTestGateway()
    const again = await call('POST', '/sessions/identify', { body: assertion, headers: { 'idempotency-key': 'again' } })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
  })

  it.each(['IdentityAssertionInvalid', 'IdentityAssertionExpired', 'IdentityAssertionReplayed'] as const)(
    'answers %s with 401 and CORS headers, and keeps the session',
    async (code) => {
      const { call, core } = await startTestGateway()
      core.refuseAssertion = code
      const answer = await call('POST', '/sessions/identify', { body: assertion })
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      expect(answer.headers.get('access-control-allow-origin')).toBe(SITE)
      expect(answer.headers.get('access-control-expose-headers')).toContain('X-Correlation-Id')
      expect(answer.headers.get('vary')).toContain('Origin')
      expect(await answer.json()).toMatchObject({ code, retryable: false, terminal: false })
      expect((await call('GET', '/messages')).status).toBe(200)
    },
  )

  it.each([
    ['no assertion', {}],
    ['an empty assertion', { assertion: '' }],
    ['one that is no text', { assertion: { sub: 'me' } }],
    ['one that is too long', { assertion: 'a'.repeat(8193) }],
    ['an unknown field', { assertion: 'grant-1', externalSubject: 'me' }],
  ])('rejects %s', async (_, body) => {
    const { call, core } = await startTestGateway()
    const answer = await call('POST', '/sessions/identify', { body })
    expect(answer.status).toBe(400)
    const text = await answer.text()
    expect(JSON.parse(text)).toMatchObject({ code: 'ValidationFailed' })
    expect(text).not.toContain('a'.repeat(40))
    expect(core.count('identifyVisitor')).toBe(0)
  })

  it('rejects an assertion in the URL', async () => {
    const { call } = await startTestGateway()
    const answer = await call('POST', '/sessions/identify?assertion=x', { body: assertion })
    expect(await answer.json()).toMatchObject({ code: 'CredentialInUrl' })
  })

  it('logs no assertion', async () => {
    const { call, core, lines } = await startTestGateway()
    await call('POST', '/sessions/identify', { body: { assertion: 'very-secret-assertion' } })
    core.refuseAssertion = 'IdentityAssertionInvalid'
    await call('POST', '/sessions/identify', { body: { assertion: 'very-secret-assertion' } })
    expect(lines.join()).not.toContain('very-secret-assertion')
  })
})

describe('DELETE /sessions/identify', () => {
  it('answers with the content of the new session, and needs no request body', async () => {
    const { call, core } = await startTestGateway()
    const answer = await call('DELETE', '/sessions/identify', keyed)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ sessionId: 'ses_nobody', identity: { state: 'anonymous' } })
    expect(core.count('clearIdentity')).toBe(1)
  })

  it('needs an idempotency key', async () => {
    const { call } = await startTestGateway()
    const answer = await call('DELETE', '/sessions/identify')
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'IdempotencyKeyInvalid' })
  })
})

describe('the body of DELETE /sessions/identify', () => {
  const json = { 'idempotency-key': 'op-1', 'content-type': 'application/json' }

  it('forwards a renewal token, and the answer has none if the core returns none', async () => {
    const { call, core } = await startTestGateway()
    core.changedSession = { renewalToken: '' }
    for (const [method, given] of [
      ['DELETE', {}],
      ['POST', assertion],
    ] as const) {
      const answer = await call(method, '/sessions/identify', {
        headers: json,
        body: { ...given, renewalToken: 'r-1' },
      })
      expect(answer.status).toBe(200)
      expect(await answer.json()).not.toHaveProperty('renewalToken')
      expect(core.calls.at(-1)?.request).toMatchObject({ renewalToken: 'r-1' })
    }
  })

  it.each([
    ['an unknown field', '{"reason":"logout"}', [{ path: '/reason', rule: 'additionalProperties' }]],
    ['a list', '[]', [{ path: '', rule: 'type' }]],
    ['a text', '"x"', [{ path: '', rule: 'type' }]],
    ['broken JSON', '{', [{ path: '', rule: 'json' }]],
  ])('is rejected with %s', async (_, body, issues) => {
    const { call, core } = await startTestGateway()
    const answer = await call('DELETE', '/sessions/identify', { headers: json, body })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'ValidationFailed', issues })
    expect(core.count('clearIdentity')).toBe(0)
  })

  it('is rejected if its content type is missing or not JSON', async () => {
    const { call, core } = await startTestGateway()
    for (const type of [null, 'text/plain']) {
      const headers = { ...json, 'content-type': type }
      const answer = await call('DELETE', '/sessions/identify', { headers, body: new Uint8Array([123, 125]) })
      expect([answer.status, await answer.json()]).toMatchObject([415, { code: 'UnsupportedMediaType' }])
    }
    expect(core.count('clearIdentity')).toBe(0)
  })

  it('may be an empty object, or missing although the content type is JSON', async () => {
    const { call } = await startTestGateway()
    expect((await call('DELETE', '/sessions/identify', { headers: json, body: '{}' })).status).toBe(200)
    expect((await call('DELETE', '/sessions/identify', { headers: json })).status).toBe(200)
  })
})

describe('a grant of a session that was closed or replaced', () => {
  it('is accepted only by the routes that close or replace a session, so that clients can retry their calls', async () => {
    const { call, core } = await startTestGateway()
    core.grants.set(GRANT, 'SessionClosed')
    expect((await call('POST', '/sessions/identify', { body: assertion })).status).toBe(200)
    expect((await call('DELETE', '/sessions/identify', keyed)).status).toBe(200)
    expect((await call('POST', '/sessions/close', { body: { scope: 'continuity' } })).status).toBe(200)
    for (const [method, path, body] of [
      ['GET', '/messages', undefined],
      ['POST', '/context/page', { url: 'https://shop.example/' }],
      ['GET', '/events', undefined],
    ] as const) {
      const answer = await call(method, path, body === undefined ? {} : { body })
      expect(answer.status).toBe(401)
      expect(await answer.json()).toMatchObject({ code: 'SessionClosed', terminal: true })
    }
  })

  it('is removed from the cache of grants at once', async () => {
    const { call, core } = await startTestGateway()
    expect((await call('GET', '/messages')).status).toBe(200)
    await call('POST', '/sessions/identify', { body: { assertion: 'somebody-else' } })
    core.grants.set(GRANT, 'SessionClosed')
    const asked = core.count('authorizeGrant')
    expect((await call('POST', '/context/page', { body: { url: 'https://shop.example/' } })).status).toBe(401)
    expect(core.count('authorizeGrant')).toBe(asked + 1)
    expect(core.count('reportPageContext')).toBe(0)
  })
})

describe('POST /context/page', () => {
  const page = { url: 'https://shop.example/cart?coupon=1', title: 'Cart', viewport: { width: 800, height: 600 } }

  it('answers 204 with and without an idempotency key', async () => {
    const { call, core } = await startTestGateway()
    const without = await call('POST', '/context/page', { body: page, headers: { 'idempotency-key': null } })
    expect([without.status, await without.text()]).toEqual([204, ''])
    expect(core.calls.at(-1)?.request).toMatchObject({ pageContext: page })
    expect(core.calls.at(-1)?.request).not.toHaveProperty('idempotencyKey')
    const again = await call('POST', '/context/page', { body: page, headers: { 'idempotency-key': 'again' } })
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([204, 'true'])
  })

  it('rejects a malformed key', async () => {
    const { call } = await startTestGateway()
    const answer = await call('POST', '/context/page', { body: page, headers: { 'idempotency-key': 'a b' } })
    expect(await answer.json()).toMatchObject({ code: 'IdempotencyKeyInvalid' })
  })
})
