import { describe, expect, it } from 'vitest'
import { GRANT } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'

const assertion = { assertion: 'grant-1' }

it('POST /sessions/identify logs no assertion', async () => {
  const { call, core, lines } = await startTestGateway()
  await call('POST', '/sessions/identify', { body: { assertion: 'very-secret-assertion' } })
  core.refuseAssertion = 'IdentityAssertionInvalid'
  await call('POST', '/sessions/identify', { body: { assertion: 'very-secret-assertion' } })
  expect(lines.join()).not.toContain('very-secret-assertion')
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
})

describe('a grant of a session that was closed or replaced', () => {
  it.each([
    ['/sessions/identify', { assertion: 'somebody-else' }],
    ['/sessions/close', { scope: 'continuity' }],
  ])('is removed from the cache of grants at once by %s', async (path, body) => {
    const { call, core } = await startTestGateway()
    expect((await call('GET', '/messages')).status).toBe(200)
    expect((await call('POST', path, { body })).status).toBe(200)
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
