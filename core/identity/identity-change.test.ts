import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { damaged } from '../../test/support/nasty-values.ts'
import { until } from '../../test/support/until.ts'
import { banOf, banSession, findSession, unbanSession } from '../bans/bans.ts'
import { codeOf, newSubject, testCores } from '../test/cores.ts'
import { rotateIdentitySecret } from '../workspaces/workspaces.ts'

const cores = testCores({ count: 2 })

describe('an identification as another visitor', () => {
  it('creates a new session, closes the old one on every core, and the sessions share no events', async () => {
    const ada = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject(), name: 'Ada' }))
    await cores.send(ada, "Ada's secret")
    const streams = [await cores.openStream(ada, cores.core), await cores.openStream(ada, cores.other)]
    const grace = await cores.identify(ada, cores.sign({ sub: newSubject(), name: 'Grace' }))

    expect(grace).toMatchObject({ identityState: 'verified', displayName: 'Grace', continuityState: 'new' })
    expect(grace.sessionId).not.toBe(ada.sessionId)
    expect(grace.conversationId).not.toBe(ada.conversationId)
    for (const stream of streams) {
      await until('the end of the stream', () => stream.ended)
      expect(stream.types.at(-1)).toBe('session.closed')
    }
    for (const core of cores.cores) {
      expect(await codeOf(cores.send(ada, 'late', { core }))).toBe('SessionClosed')
      expect(await codeOf(cores.history(ada, core))).toBe('SessionClosed')
      expect(await codeOf(cores.clear(ada, { core }))).toBe('SessionClosed')
    }
    const fresh = await cores.openStream(grace, cores.other)
    await cores.send(grace, "Grace's secret")
    await until('her message', () => fresh.types.length > 0)
    expect(fresh.json.join()).not.toContain('Ada')
    expect(streams.flatMap(({ json }) => json).join()).not.toContain('Grace')
    expect(await cores.history(grace)).toEqual(["Grace's secret"])
  })

  it('continues the open conversation of the new visitor', async () => {
    const sub = newSubject()
    const elsewhere = await cores.newVerified(sub)
    await cores.send(elsewhere, 'hello')
    const other = await cores.newVerified()
    expect(await cores.identify(other, cores.sign({ sub }))).toMatchObject({
      conversationId: elsewhere.conversationId,
      continuityState: 'continued',
    })
  })

  it.each(someOf(['identify', 'clear'] as const, 1))(
    'creates one successor session when %s runs six times at once',
    async (how) => {
      const session = await cores.newVerified()
      const outcomes = await Promise.allSettled(
        Array.from({ length: 6 }, (_, index) => {
          const core = cores.cores[index % 2]!
          return how === 'clear'
            ? cores.clear(session, { core })
            : cores.identify(session, cores.sign({ sub: newSubject() }), { core })
        }),
      )
      const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
      expect(won).toHaveLength(1)
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('SessionClosed')
      }
      const { successor } = await findSession(cores.core, session.sessionId)
      expect(successor?.sessionId).toBe(won[0]!.value.sessionId)
      expect(await codeOf(cores.send(won[0]!.value, 'hello'))).toBe('ok')
    },
  )
})

describe('clearing the identity', () => {
  it('closes a verified session and begins an anonymous session with a new conversation', async () => {
    const ada = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject(), name: 'Ada' }))
    await cores.send(ada, 'mine')
    const anonymous = await cores.clear(ada)
    expect(anonymous).toMatchObject({ identityState: 'anonymous', continuityState: 'new' })
    expect(anonymous.displayName).toBeUndefined()
    expect(anonymous.conversationId).not.toBe(ada.conversationId)
    expect(await cores.history(anonymous)).toEqual([])
    expect(await codeOf(cores.send(ada, 'late'))).toBe('SessionClosed')
    expect((await findSession(cores.core, anonymous.sessionId)).identity).toBeUndefined()
  })
})

describe('an assertion', () => {
  it('is accepted from exactly one of 20 sessions that use it concurrently on two cores', async () => {
    const sub = newSubject()
    const assertion = cores.sign({ sub })
    const sessions = await Promise.all(Array.from({ length: 20 }, () => cores.newSession()))
    const outcomes = await Promise.all(
      sessions.map((session, index) => codeOf(cores.identify(session, assertion, { core: cores.cores[index % 2]! }))),
    )
    expect(outcomes.toSorted()).toEqual([...Array(19).fill('IdentityAssertionReplayed'), 'ok'])
    const identities = await Promise.all(sessions.map(({ sessionId }) => findSession(cores.core, sessionId)))
    expect(identities.filter(({ identity }) => identity)).toHaveLength(1)
  })

  itLong('is accepted exactly once when one session uses it concurrently with 20 idempotency keys', async () => {
    const session = await cores.newSession()
    const assertion = cores.sign({ sub: newSubject() })
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        codeOf(cores.identify(session, assertion, { core: cores.cores[index % 2]! })),
      ),
    )
    expect(outcomes.filter((outcome) => outcome === 'ok')).toHaveLength(1)
    // Attempts after the first success find the session closed.
    expect(['IdentityAssertionReplayed', 'SessionClosed', 'ok']).toEqual(expect.arrayContaining(outcomes))
  })

  it('returns the first credentials on any core when the request is repeated with the same idempotency key', async () => {
    const session = await cores.newSession()
    const assertion = cores.sign({ sub: newSubject(), name: 'Ada' })
    const key = randomUUID()
    const first = await cores.identify(session, assertion, { key })
    cores.advance(400)
    for (const core of cores.cores) expect(await cores.identify(session, assertion, { key, core })).toEqual(first)
    expect(await codeOf(cores.identify(session, cores.sign(), { key }))).toBe('IdempotencyConflict')
    const { database } = cores.core
    const stored = JSON.stringify(await database.collections.idempotency.find().toArray())
    for (const secret of [first.accessGrant, first.renewalToken, assertion]) expect(stored).not.toContain(secret)
  })

  it('returns the first result when the request that changed the visitor is repeated with the ended grant', async () => {
    const ada = await cores.newVerified()
    const assertion = cores.sign({ sub: newSubject() })
    const key = randomUUID()
    const first = await cores.identify(ada, assertion, { key })
    expect(await cores.identify(ada, assertion, { key, core: cores.other })).toEqual(first)
    const clearKey = randomUUID()
    const cleared = await cores.clear(first, { key: clearKey })
    expect(await cores.clear(first, { key: clearKey, core: cores.other })).toEqual(cleared)
    expect(await codeOf(cores.identify(ada, cores.sign(), { key }))).toBe('IdempotencyConflict')
    expect(await codeOf(cores.identify(ada, assertion))).toBe('SessionClosed')
    // After its idempotency record is removed, the same key with another assertion is a new
    // operation.
    await cores.core.database.collections.idempotency.deleteMany({})
    expect(await codeOf(cores.identify(ada, cores.sign(), { key }))).toBe('SessionClosed')
    expect(await cores.identify(ada, assertion, { key })).toMatchObject({ sessionId: first.sessionId })
  })

  it.each([
    ['wrongly signed', 'IdentityAssertionInvalid', () => damaged(cores.sign())],
    ['expired', 'IdentityAssertionExpired', () => cores.sign({ iat: 1_000_000, exp: 1_000_060 })],
    ['for another site', 'IdentityAssertionInvalid', () => cores.sign({ aud: 'pk_other' })],
  ])('changes nothing if it is %s, and its idempotency key can be used again', async (_, code, make) => {
    const session = await cores.newSession()
    const key = randomUUID()
    expect(await codeOf(cores.identify(session, make(), { key }))).toBe(code)
    const found = await findSession(cores.core, session.sessionId)
    expect(found.identity).toBeUndefined()
    expect(await cores.clear(session)).toMatchObject({ identityState: 'anonymous' })
    expect(await cores.identify(session, cores.sign({ sub: newSubject() }), { key })).toMatchObject({
      identityState: 'verified',
    })
  })

  it('is accepted with the previous secret until a rotation without overlap', async () => {
    const site = await cores.newSite()
    const identify = async () => {
      const session = await cores.newSession(cores.core, randomUUID(), site)
      return codeOf(cores.identify(session, site.sign({ sub: newSubject() }), { core: cores.other }))
    }
    for (let rotations = 0; rotations < 2; rotations += 1) {
      await rotateIdentitySecret(cores.core, site.publicSiteKey, undefined)
      expect(await identify()).toBe('ok')
    }
    await rotateIdentitySecret(cores.core, site.publicSiteKey, undefined, { overlapSeconds: 0 })
    expect(await identify()).toBe('IdentityAssertionInvalid')
  })
})

itLong('a ban on a verified session bans the visitor on every device and core, and also bans the browser', async () => {
  const sub = newSubject()
  const browser = randomUUID()
  const one = await cores.identify(await cores.newSession(cores.core, browser), cores.sign({ sub }))
  const two = await cores.newVerified(sub, cores.other)
  const stream = await cores.openStream(two, cores.other)
  await banSession(cores.core, one.sessionId, 'spam')
  await until('the end of the stream', () => stream.ended)
  expect(stream.types.at(-1)).toBe('visitor.banned')

  const fresh = await cores.newSession()
  expect(await codeOf(cores.identify(fresh, cores.sign({ sub }), { core: cores.other }))).toBe('VisitorBanned')
  expect(await codeOf(cores.send(fresh, 'still anonymous'))).toBe('ok')
  const other = await cores.newVerified()
  expect(await codeOf(cores.identify(other, cores.sign({ sub })))).toBe('VisitorBanned')
  expect(await codeOf(cores.send(other, 'still somebody else'))).toBe('ok')
  expect(await codeOf(cores.newSession(cores.other, browser))).toBe('VisitorBanned')

  // Operators see the ban on the visitor's other sessions until the ban is lifted.
  const seen = async (sessionId: string) =>
    (await banOf(cores.other, await findSession(cores.other, sessionId))).visitorBanned
  expect(await Promise.all([one, two, fresh, other].map(({ sessionId }) => seen(sessionId)))).toEqual([
    true,
    true,
    false,
    false,
  ])
  await unbanSession(cores.core, one.sessionId)
  expect(await seen(two.sessionId)).toBe(false)
  expect(await findSession(cores.other, one.sessionId)).toMatchObject({ status: 'banned' })
  expect(await codeOf(cores.identify(fresh, cores.sign({ sub })))).toBe('ok')
  expect(await codeOf(cores.newSession(cores.other, browser))).toBe('ok')
})
