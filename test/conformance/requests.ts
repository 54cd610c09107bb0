import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { createGrantForger } from '../authorization/forged-grants.ts'
import { newSite } from '../support/resources.ts'
import { until } from '../support/until.ts'
import { BASE, bearer, message, type Request } from './client.ts'
import { openGateway } from './raw-stream.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const CREDENTIALS = ['grant', 'access_token', 'token', 'authorization', 'renewalToken', 'assertion']

/** Tests of contract section 1: checks of requests, and properties that all responses have. */
export function requestRules(suite: () => Suite): void {
  /**
   * Sends requests that fail two checks, and expects the error of the earlier check.
   *
   * @param forgeExpired makes an expired grant. With it, only the pairs with the expiry check are tested.
   */
  async function expectOrder(forgeExpired?: (grant: string) => Promise<string>) {
    const { client, operator } = suite().roomy
    const { session: ended } = await client.visitor()
    await operator.sessions.revokeSession({ sessionId: ended.sessionId })
    const good = await client.visitor()
    const expired = await forgeExpired?.(good.session.accessGrant)

    /**
     * One entry per check of a request, in the contract's order. Each entry is a change that makes
     * a valid send fail this check.
     */
    const breaks: { code: string; headers?: Record<string, string | null>; query?: string; body?: unknown }[] = [
      { code: 'OriginNotAllowed', headers: { origin: 'https://evil.example' } },
      { code: 'WidgetVersionUnsupported', headers: { 'x-service-widget-version': '2.0' } },
      { code: 'CredentialInUrl', query: '?token=x' },
      { code: 'GrantMissing', headers: { authorization: null } },
      { code: 'GrantInvalid', headers: { authorization: 'Bearer x.y.z' } },
      { code: 'SessionRevoked', headers: { authorization: `Bearer ${ended.accessGrant}` } },
      ...(expired ? [{ code: 'GrantExpired', headers: { authorization: `Bearer ${expired}` } }] : []),
      { code: 'UnsupportedMediaType', headers: { 'content-type': 'text/plain' } },
      { code: 'IdempotencyKeyInvalid', headers: { 'idempotency-key': 'not allowed' } },
      { code: 'ValidationFailed', body: message('op-1', { extra: 1 }) },
    ]
    for (const [index, first] of breaks.entries()) {
      for (const second of breaks.slice(index + 1)) {
        if (expired && ![first, second].some(({ code }) => code === 'GrantExpired')) continue
        const answer = await client.call('POST', `/messages${first.query ?? second.query ?? ''}`, {
          headers: { ...bearer(good), 'idempotency-key': 'op-1', ...second.headers, ...first.headers },
          body: first.body ?? second.body ?? message('op-1'),
        })
        expect(answer.body.code, `${first.code} before ${second.code}`).toBe(first.code)
      }
    }
  }

  rule('C1.1', () => expectOrder())

  rule(
    'C1.1',
    async () => {
      const forge = await createGrantForger(suite().roomy.stack.dataDir)
      await expectOrder((grant) => forge(grant, { claims: { exp: Math.floor(Date.now() / 1000) - 60 } }))
    },
    'with an expired grant',
  )

  rule(
    'C1.1',
    async () => {
      const { client } = suite().limited
      const visitor = await client.visitor()
      const send = (id: string, more: object = {}) =>
        client.call('POST', '/messages', {
          headers: { ...bearer(visitor), 'idempotency-key': id },
          body: message(id, more),
        })
      await until('an invalid message while the limit is exhausted', async () => {
        const before = await send(randomUUID())
        expect((await send(randomUUID(), { extra: 1 })).body.code).toBe('ValidationFailed')
        const after = await send(randomUUID())
        return [before, after].every(({ body }) => body.code === 'RateLimited')
      })
    },
    'the rate limit is checked last',
  )

  rule('C1.2', async () => {
    const { client, stack } = suite().roomy
    const other = 'https://only-there.example'
    await newSite(suite().roomy.operator, [other])
    const visitor = await client.visitor()
    const request: Request = { headers: { ...bearer(visitor), origin: other } }
    await client.fails('OriginNotAllowed', 'GET', '/messages', request)
    await client.fails('OriginNotAllowed', 'GET', `/config/${stack.demo.siteKey}`, request)
    await client.fails('OriginNotAllowed', 'POST', '/sessions', {
      headers: { origin: other },
      body: { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'i' },
    })
  })

  rule('C1.3', async () => {
    const { client } = suite().roomy
    const { siteKey } = await newSite(suite().roomy.operator, [
      'https://*.wild.example',
      'https://shop.exact.example:8443',
    ])
    const codeFor = async (origin: string) =>
      (await client.call('GET', `/config/${siteKey}`, { headers: { origin } })).body.code
    for (const origin of ['https://a.wild.example', 'https://a.b.wild.example', 'https://shop.exact.example:8443'])
      expect(await codeFor(origin), origin).toBeUndefined()
    for (const origin of [
      'https://wild.example',
      'http://a.wild.example',
      'https://a.wild.example:444',
      'https://awild.example',
      'https://a.wild.example.evil.example',
      'https://shop.exact.example',
      'https://SHOP.exact.example:8443',
      'null',
      'https://*.wild.example',
    ])
      expect(await codeFor(origin), origin).toBe('OriginNotAllowed')
  })

  rule('C1.4', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    const headers = { ...bearer(visitor), 'idempotency-key': 'op-1' }
    const create = { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'i' }
    const unknown: [string, string, Request, string][] = [
      ['POST', '/messages', { headers, body: message('op-1', { extra: 1 }) }, '/extra'],
      ['POST', '/messages?extra=1', { headers, body: message('op-1') }, '/extra'],
      [
        'POST',
        '/messages',
        { headers, body: message('op-1', { pageContext: { url: 'https://a.example/', x: 1 } }) },
        '/pageContext/x',
      ],
      ['GET', '/messages?extra=1', { headers }, '/extra'],
      ['GET', '/events?extra=1', { headers }, '/extra'],
      ['GET', `/config/${stack.demo.siteKey}?extra=1`, {}, '/extra'],
      ['POST', '/sessions', { body: { ...create, extra: 1 } }, '/extra'],
      ['POST', '/sessions/close', { headers, body: { scope: 'panel', extra: 1 } }, '/extra'],
      ['POST', '/sessions/renew', { headers, body: { sessionId: 's', renewalToken: 'r', extra: 1 } }, '/extra'],
    ]
    for (const [method, path, request, pointer] of unknown) {
      const { body } = await client.fails('ValidationFailed', method, path, request)
      expect(body.issues, `${method} ${path}`).toEqual([{ path: pointer, rule: 'additionalProperties' }])
    }
  })

  rule('C1.5', async () => {
    const { client } = suite().roomy
    for (const name of CREDENTIALS) await client.fails('CredentialInUrl', 'GET', `/messages?${name}=x`)
  })

  rule('C1.6', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const close = (key: string | null) =>
      client.call('POST', '/sessions/close', {
        headers: { ...bearer(visitor), 'idempotency-key': key },
        body: { scope: 'panel' },
      })
    for (const key of [null, '', 'a b', 'ä'.normalize(), 'a/b', 'x'.repeat(129)].map((key) =>
      key === 'ä' ? Buffer.from(key).toString('latin1') : key,
    ))
      expect((await close(key)).body.code, String(key)).toBe('IdempotencyKeyInvalid')
    for (const key of ['a', 'A.z_9:-', 'x'.repeat(128)]) expect((await close(key)).status, key).toBe(200)
  })

  rule('C1.10', async () => {
    const { client } = suite().roomy
    const idOf = async (given: string | null) =>
      (await client.call('GET', '/messages', { headers: { 'x-correlation-id': given } })).headers.get(
        'x-correlation-id',
      )
    for (const good of ['a', 'A-z_0.9', 'x'.repeat(64)]) expect(await idOf(good)).toBe(good)
    for (const bad of [null, 'a b', 'x'.repeat(65), 'a:b']) {
      const made = await idOf(bad)
      expect(made).toMatch(/^[A-Za-z0-9._-]{1,64}$/)
      expect(made).not.toBe(bad)
    }
  })

  rule('C1.11', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const headers = bearer(visitor)
    const answers = [
      await client.call('GET', '/messages', { headers }),
      await client.call('GET', '/messages?limit=0', { headers }),
      await client.call('GET', '/messages', { headers: { authorization: null } }),
      await client.call('POST', '/sessions/close', { headers, body: { scope: 'panel' } }),
    ]
    for (const answer of answers) expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  rule('C1.15', async () => {
    const { client } = suite().roomy
    await client.fails('GrantMissing', 'GET', '/messages')
    await client.fails('GrantInvalid', 'GET', '/messages', { headers: { authorization: 'Bearer nonsense' } })
  })

  rule('C1.16', async () => {
    const { client } = suite().roomy
    const { body } = await client.call('GET', '/messages')
    expect(Object.keys(body).sort()).toEqual(['code', 'correlationId', 'retryable', 'terminal'])
  })

  rule('C1.17', async () => {
    const { client, stack } = suite().roomy
    const value = 'hunter2 '.repeat(40)
    const { body, text } = await client.fails('ValidationFailed', 'POST', '/sessions', {
      body: { publicSiteKey: stack.demo.siteKey, clientInstanceId: value, locale: [value], [`x/${'y'}`]: value },
    })
    expect(body.issues).toEqual(
      expect.arrayContaining([
        { path: '/clientInstanceId', rule: 'maxLength' },
        { path: '/locale', rule: 'type' },
        { path: '/x~1y', rule: 'additionalProperties' },
      ]),
    )
    for (const issue of body.issues) expect(Object.keys(issue).sort()).toEqual(['path', 'rule'])
    expect(text).not.toContain('hunter2')
  })

  rule('C1.18', async () => {
    const { client } = suite().roomy
    await client.fails('ValidationFailed', 'POST', '/sessions', { body: '{"a":' })
    await client.fails('ValidationFailed', 'GET', '/config/%zz')
    const answer = await raw(`GET ${BASE}/messages HTTP/1.1\r\nHost: x\r\nX-Long: ${'y'.repeat(20_000)}\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect(Object.keys(JSON.parse(answer.slice(answer.indexOf('{'))))).toEqual(
      expect.arrayContaining(['code', 'retryable', 'terminal', 'correlationId']),
    )
  })

  rule('C1.19', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const headers = bearer(visitor)
    for (const size of [65_537, 250_000])
      await client.fails('PayloadTooLarge', 'POST', '/messages', { headers, body: 'x'.repeat(size) })
  })

  const raw = (bytes: string) => openGateway(suite().roomy, bytes).ended
}
