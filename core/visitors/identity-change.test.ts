import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'

const database = testDatabase()
let cores: TestCores
let here: TestCores['core']
let there: TestCores['core']

beforeAll(async () => {
  cores = await startTestCores(database, { count: 2 })
  here = cores.core
  there = cores.cores[1]!
})
afterAll(() => cores.stop())

/** A subject unique to one test. */
const newSubject = () => `customer-${randomUUID()}`
const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'ok',
    (error: { code: ErrorCode }) => ErrorCode[error.code],
  )

describe('an identification as another subject', () => {
  it('creates a new session and closes the old one on every core, without shared events', async () => {
    const ada = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject(), name: 'Ada' }))
    await cores.send(ada, "Ada's secret")
    const streams = [await cores.openStream(ada, here), await cores.openStream(ada, there)]
    const grace = await cores.identify(ada, cores.sign({ sub: newSubject(), name: 'Grace' }))

    expect(grace).toMatchObject({ identityState: 'verified', displayName: 'Grace', continuityState: 'new' })
    expect(grace.sessionId).not.toBe(ada.sessionId)
    expect(grace.conversationId).not.toBe(ada.conversationId)
    for (const stream of streams) {
      await until('the end of the stream', () => stream.ended)
      expect(stream.types.at(-1)).toBe('session.closed')
    }
    for (const core of cores.cores) {
      expect(await codeOf(cores.send(ada, 'late', { core }))).toBe('SESSION_CLOSED')
      expect(await codeOf(cores.history(ada, core))).toBe('SESSION_CLOSED')
      expect(await codeOf(cores.clear(ada, { core }))).toBe('SESSION_CLOSED')
    }
    const fresh = await cores.openStream(grace, there)
    await cores.send(grace, "Grace's secret")
    await until('her message', () => fresh.types.length > 0)
    expect(fresh.json.join()).not.toContain('Ada')
    expect(streams.flatMap(({ json }) => json).join()).not.toContain('Grace')
    expect(await cores.history(grace)).toEqual(["Grace's secret"])
  })

  it('continues the open conversation of the new subject', async () => {
    const sub = newSubject()
    const elsewhere = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    await cores.send(elsewhere, 'hello')
    const other = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject() }))
    expect(await cores.identify(other, cores.sign({ sub }))).toMatchObject({
      conversationId: elsewhere.conversationId,
      continuityState: 'continued',
    })
  })

  it.each(['identify', 'clear'] as const)('has one successor when %s runs six times at once', async (how) => {
    const session = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject() }))
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
      if (outcome.status === 'rejected') expect(ErrorCode[outcome.reason.code]).toBe('SESSION_CLOSED')
    }
    const { successor } = await here.sessions.find(session.sessionId)
    expect(successor?.sessionId).toBe(won[0]!.value.sessionId)
    expect(await codeOf(cores.send(won[0]!.value, 'hello'))).toBe('ok')
  })
})

describe('clearing the identity', () => {
  it('closes the session and begins an anonymous one with a new conversation', async () => {
    const ada = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject(), name: 'Ada' }))
    await cores.send(ada, 'mine')
    const anonymous = await cores.clear(ada)
    expect(anonymous).toMatchObject({ identityState: 'anonymous', continuityState: 'new' })
    expect(anonymous.displayName).toBeUndefined()
    expect(anonymous.conversationId).not.toBe(ada.conversationId)
    expect(await cores.history(anonymous)).toEqual([])
    expect(await codeOf(cores.send(ada, 'late'))).toBe('SESSION_CLOSED')
    expect((await here.sessions.find(anonymous.sessionId)).identity).toBeUndefined()
  })

  it('returns an anonymous session unchanged', async () => {
    const session = await cores.newSession()
    await cores.send(session, 'hello')
    const same = await cores.clear(session)
    const { continuityState, replay, ...content } = session
    expect(same).toMatchObject(content)
    expect(same.replay).toEqual({ ...replay, lastSequence: 1, oldestSequence: 1 })
    expect(await cores.history(same)).toEqual(['hello'])
  })
})

describe('an assertion', () => {
  it('is accepted once when 20 sessions use it at once on two cores', async () => {
    const sub = newSubject()
    const assertion = cores.sign({ sub })
    const sessions = await Promise.all(Array.from({ length: 20 }, () => cores.newSession()))
    const outcomes = await Promise.all(
      sessions.map((session, index) => codeOf(cores.identify(session, assertion, { core: cores.cores[index % 2]! }))),
    )
    expect(outcomes.toSorted()).toEqual([...Array(19).fill('IDENTITY_ASSERTION_REPLAYED'), 'ok'])
    const identities = await Promise.all(sessions.map(({ sessionId }) => here.sessions.find(sessionId)))
    expect(identities.filter(({ identity }) => identity)).toHaveLength(1)
  })

  it('is accepted once when one session uses it 20 times at once with 20 keys', async () => {
    const session = await cores.newSession()
    const assertion = cores.sign({ sub: newSubject() })
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        codeOf(cores.identify(session, assertion, { core: cores.cores[index % 2]! })),
      ),
    )
    expect(outcomes.filter((outcome) => outcome === 'ok')).toHaveLength(1)
    // Later attempts find the session closed.
    expect(['IDENTITY_ASSERTION_REPLAYED', 'SESSION_CLOSED', 'ok']).toEqual(expect.arrayContaining(outcomes))
  })

  it('returns the first credentials for a repeat with the same key, on any core', async () => {
    const session = await cores.newSession()
    const assertion = cores.sign({ sub: newSubject(), name: 'Ada' })
    const key = randomUUID()
    const first = await cores.identify(session, assertion, { key })
    cores.advance(400)
    for (const core of cores.cores) expect(await cores.identify(session, assertion, { key, core })).toEqual(first)
    expect(await codeOf(cores.identify(session, cores.sign(), { key }))).toBe('IDEMPOTENCY_CONFLICT')
    const { database } = here
    const stored = JSON.stringify(await database.collections.idempotency.find().toArray())
    for (const secret of [first.accessGrant, first.renewalToken, assertion]) expect(stored).not.toContain(secret)
  })

  it('that changed the subject returns its first result for a repeat with the ended grant', async () => {
    const ada = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject() }))
    const assertion = cores.sign({ sub: newSubject() })
    const key = randomUUID()
    const first = await cores.identify(ada, assertion, { key })
    expect(await cores.identify(ada, assertion, { key, core: there })).toEqual(first)
    const clearKey = randomUUID()
    const cleared = await cores.clear(first, { key: clearKey })
    expect(await cores.clear(first, { key: clearKey, core: there })).toEqual(cleared)
    expect(await codeOf(cores.identify(ada, cores.sign(), { key }))).toBe('IDEMPOTENCY_CONFLICT')
    expect(await codeOf(cores.identify(ada, assertion))).toBe('SESSION_CLOSED')
    // Without the record, the key with another assertion is not a repeat.
    await here.database.collections.idempotency.deleteMany({})
    expect(await codeOf(cores.identify(ada, cores.sign(), { key }))).toBe('SESSION_CLOSED')
    expect(await cores.identify(ada, assertion, { key })).toMatchObject({ sessionId: first.sessionId })
  })

  it.each([
    ['wrongly signed', 'IDENTITY_ASSERTION_INVALID', () => `${cores.sign().slice(0, -4)}AAAA`],
    ['expired', 'IDENTITY_ASSERTION_EXPIRED', () => cores.sign({ iat: 1_000_000, exp: 1_000_060 })],
    ['for another site', 'IDENTITY_ASSERTION_INVALID', () => cores.sign({ aud: 'pk_other' })],
  ])('that is %s changes nothing and does not use up its key', async (_, code, make) => {
    const session = await cores.newSession()
    const key = randomUUID()
    expect(await codeOf(cores.identify(session, make(), { key }))).toBe(code)
    const found = await here.sessions.find(session.sessionId)
    expect(found.identity).toBeUndefined()
    expect(await cores.clear(session)).toMatchObject({ identityState: 'anonymous' })
    expect(await cores.identify(session, cores.sign({ sub: newSubject() }), { key })).toMatchObject({
      identityState: 'verified',
    })
  })

  it('signed with a replaced secret is accepted until a rotation without overlap', async () => {
    const old = () => cores.sign({ sub: newSubject() })
    const { identitySecrets } = (await here.stores.workspaces.findInstallations([cores.publicSiteKey]))[0]!
    await here.workspaces.rotateIdentitySecret(cores.publicSiteKey, undefined)
    expect(await codeOf(cores.identify(await cores.newSession(), old(), { core: there }))).toBe('ok')
    try {
      await here.workspaces.rotateIdentitySecret(cores.publicSiteKey, undefined)
      expect(await codeOf(cores.identify(await cores.newSession(), old(), { core: there }))).toBe('ok')
      await here.workspaces.rotateIdentitySecret(cores.publicSiteKey, undefined, { overlapSeconds: 0 })
      expect(await codeOf(cores.identify(await cores.newSession(), old(), { core: there }))).toBe(
        'IDENTITY_ASSERTION_INVALID',
      )
    } finally {
      const { installations } = here.database.collections
      await installations.updateOne({ _id: cores.publicSiteKey }, { $set: { identitySecrets } })
      await here.database.collections.wakeups.insertOne({
        from: 'test',
        heads: [],
        changed: [cores.publicSiteKey],
        at: new Date(),
      })
      await until('the old secret', async () =>
        (await codeOf(cores.identify(await cores.newSession(), old()))) === 'ok' ? true : undefined,
      )
    }
  })
})

describe('a ban on a verified session', () => {
  it('bans the subject on every device and core, and the browser', async () => {
    const sub = newSubject()
    const browser = randomUUID()
    const one = await cores.identify(await cores.newSession(here, browser), cores.sign({ sub }))
    const two = await cores.identify(await cores.newSession(there), cores.sign({ sub }), { core: there })
    const stream = await cores.openStream(two, there)
    await here.sessions.ban(one.sessionId, 'spam')
    await until('the end of the stream', () => stream.ended)
    expect(stream.types.at(-1)).toBe('visitor.banned')

    const fresh = await cores.newSession()
    expect(await codeOf(cores.identify(fresh, cores.sign({ sub }), { core: there }))).toBe('VISITOR_BANNED')
    expect(await codeOf(cores.send(fresh, 'still anonymous'))).toBe('ok')
    const other = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject() }))
    expect(await codeOf(cores.identify(other, cores.sign({ sub })))).toBe('VISITOR_BANNED')
    expect(await codeOf(cores.send(other, 'still somebody else'))).toBe('ok')
    expect(await codeOf(cores.newSession(there, browser))).toBe('VISITOR_BANNED')

    // Operators see the ban on the subject's other sessions, until it is lifted.
    const seen = async (sessionId: string) => there.sessions.isVisitorBanned(await there.sessions.find(sessionId))
    expect(await Promise.all([one, two, fresh, other].map(({ sessionId }) => seen(sessionId)))).toEqual([
      true,
      true,
      false,
      false,
    ])
    await here.sessions.unban(one.sessionId)
    expect(await seen(two.sessionId)).toBe(false)
    expect(await there.sessions.find(one.sessionId)).toMatchObject({ status: 'banned' })
    expect(await codeOf(cores.identify(fresh, cores.sign({ sub })))).toBe('ok')
    expect(await codeOf(cores.newSession(there, browser))).toBe('ok')
  })
})
