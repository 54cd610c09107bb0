import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { signAssertion } from '../support/assertion.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer } from './client.ts'
import { assertionOf, identify, newSubject } from './identity.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const rejectionOf = (suite: () => Suite) => (code: string, visitor: Visitor, assertion: unknown) =>
  suite().roomy.client.fails(code, 'POST', '/sessions/identify', { headers: bearer(visitor), body: { assertion } })

/** Tests of the form of an assertion: each makes many calls. */
export function assertionFormRules(suite: () => Suite): void {
  const expectRejection = rejectionOf(suite)
  const invalid: [string, () => string][] = [
    ['not a JWS', () => 'x'],
    ['another type', () => assertionOf(suite(), {}, { header: { typ: 'JWT' } })],
    ['no signature', () => assertionOf(suite(), {}, { header: { alg: 'none' }, hash: 'none' })],
    ['another algorithm', () => assertionOf(suite(), {}, { header: { alg: 'HS512' }, hash: 'sha512' })],
    ['an unknown kid', () => assertionOf(suite(), {}, { header: { kid: 'other' } })],
    ['no kid', () => assertionOf(suite(), {}, { header: { kid: undefined } })],
    ['another secret', () => signAssertion({ ...suite().roomy.stack.demo.identity, siteKey: 'pk_demo', secret: 'x' })],
  ]
  const badClaims: [string, Record<string, unknown>][] = [
    ...['aud', 'sub', 'iat', 'exp', 'jti'].map((name): [string, Record<string, unknown>] => [
      `no ${name}`,
      { [name]: undefined },
    ]),
    ['another site', { aud: 'pk_other' }],
    ['an empty subject', { sub: '' }],
    ['a long subject', { sub: 'x'.repeat(257) }],
    ['a subject that is a number', { sub: 7 }],
    ['a short nonce', { jti: 'x'.repeat(7) }],
    ['a long nonce', { jti: 'x'.repeat(129) }],
    ['a long name', { name: 'x'.repeat(129) }],
    ['a list as context', { ctx: ['a'] }],
    ['a nested context', { ctx: { plan: { name: 'pro' } } }],
    ['eleven keys', { ctx: Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`k${index}`, 1])) }],
    ['a context over 1 KiB', { ctx: { k: 'x'.repeat(1020) } }],
  ]

  rule('C3.50', async () => {
    const visitor = await suite().roomy.client.visitor()
    for (const [, make] of invalid) await expectRejection('IdentityAssertionInvalid', visitor, make())
  })

  rule(
    'C3.50',
    async () => {
      const { client, operator, stack } = suite().roomy
      const { origin } = stack.demo
      const { connection } = await operator.workspaces.createConnection({
        workspaceId: stack.demo.workspaceId,
        name: 'Rotating',
      })
      const created = await operator.workspaces.createInstallation({
        connectionId: connection!.connectionId,
        origins: [origin],
      })
      const siteKey = created.installation!.publicSiteKey
      const rotated = await operator.workspaces.rotateIdentitySecret({ siteKey })
      const third = () => operator.workspaces.rotateIdentitySecret({ siteKey, overlapSeconds: 0 })
      const statusWith = async (secret: typeof created.identitySecret) => {
        const visitor = await stack.newVisitor({ origin, siteKey })
        const { kid, secret: key } = secret!
        const body = { assertion: signAssertion({ siteKey, kid, secret: key }) }
        return (await client.call('POST', '/sessions/identify', { headers: bearer(visitor), body })).status
      }
      expect(await statusWith(created.identitySecret)).toBe(200)
      expect(await statusWith(rotated.identitySecret)).toBe(200)
      const early = await operator.workspaces.rotateIdentitySecret({ siteKey })
      expect(await statusWith(created.identitySecret)).toBe(200)
      expect(await statusWith(early.identitySecret)).toBe(200)
      const last = await third()
      expect(await statusWith(last.identitySecret)).toBe(200)
      expect(await statusWith(early.identitySecret)).toBe(200)
      await until('the rotated secret to be rejected', async () => (await statusWith(created.identitySecret)) === 401)
    },
    'two secrets are active during a rotation',
  )

  rule('C3.51', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    for (const [, claims] of badClaims)
      await expectRejection('IdentityAssertionInvalid', visitor, assertionOf(suite(), claims))
    const { sessionId } = visitor.session
    const { session } = await operator.sessions.getSession({ sessionId })
    expect([session?.identityState, session?.externalSubject]).toEqual(['anonymous', undefined])
    const most = {
      sub: `${randomUUID()}${'x'.repeat(220)}`,
      jti: randomUUID().padEnd(128, 'x'),
      name: 'x'.repeat(128),
      ctx: Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`k${index}`, 'x'.repeat(80)])),
    }
    await identify(suite(), visitor, most)
    await identify(suite(), await client.visitor(), { sub: randomUUID()[0], jti: randomUUID().slice(0, 8) })
  })

  rule('C3.52', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const now = Math.floor(Date.now() / 1000)
    const validity = (from: number, lasts: number) => ({
      iat: now + from,
      exp: now + from + lasts,
      sub: 'of-the-times',
    })
    for (const claims of [validity(0, 301), validity(0, 0), validity(0, -10), validity(45, 60), { iat: `${now}` }])
      await expectRejection('IdentityAssertionInvalid', visitor, assertionOf(suite(), claims))
    await expectRejection('IdentityAssertionExpired', visitor, assertionOf(suite(), validity(-140, 100)))
    for (const claims of [validity(0, 300), validity(20, 60), validity(-120, 100)])
      await identify(suite(), visitor, claims)
  })
}

/** Tests of contract section 3: the identity assertion. */
export function assertionRules(suite: () => Suite): void {
  const expectRejection = rejectionOf(suite)
  rule('C3.53', async () => {
    const { client, stack } = suite().roomy
    const claims = { sub: newSubject(), jti: randomUUID() }
    const visitor = await client.visitor()
    await identify(suite(), visitor, claims)
    const assertion = assertionOf(suite(), claims)
    await expectRejection('IdentityAssertionReplayed', visitor, assertion)
    await expectRejection('IdentityAssertionReplayed', await client.visitor(), assertion)
    // Only one of several concurrent requests through two gateways may succeed.
    const body = { assertion: assertionOf(suite(), { sub: newSubject() }) }
    const visitors = await Promise.all([client.visitor(), client.visitor(), client.visitor(), client.visitor()])
    const answers = await Promise.all(
      visitors.map((each, index) =>
        client.call('POST', '/sessions/identify', {
          headers: bearer(each),
          body,
          via: stack.gateways[index % 2]!.url,
        }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
  })

  rule('C3.54', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    const ctx = { plan: 'pro', role: 'admin', seats: 3, trial: false }
    const answer = await identify(suite(), visitor, { sub: newSubject(), ctx })
    expect(answer.text).not.toMatch(/pro"|admin|seats/)
    const { session } = await operator.sessions.getSession({ sessionId: visitor.session.sessionId })
    expect(session?.context).toEqual(ctx)
  })

  rule('E.IdentityAssertionInvalid', async () => {
    const visitor = await suite().roomy.client.visitor()
    await expectRejection('IdentityAssertionInvalid', visitor, `${assertionOf(suite())}x`)
    expect((await visitor.send('the session is unchanged')).status).toBe(202)
  })

  rule('E.IdentityAssertionExpired', async () => {
    const visitor = await suite().roomy.client.visitor()
    const assertion = assertionOf(suite(), { iat: 1_700_000_000, exp: 1_700_000_100 })
    await expectRejection('IdentityAssertionExpired', visitor, assertion)
    expect((await visitor.send('the session is unchanged')).status).toBe(202)
  })

  rule('E.IdentityAssertionReplayed', async () => {
    const visitor = await suite().roomy.client.visitor()
    const claims = { sub: newSubject(), jti: randomUUID() }
    await identify(suite(), visitor, claims)
    await expectRejection('IdentityAssertionReplayed', visitor, assertionOf(suite(), { ...claims, sub: 'another' }))
    expect((await visitor.send('the session is unchanged')).status).toBe(202)
  })
}
