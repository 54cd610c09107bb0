import { randomUUID } from 'node:crypto'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { itLong, runs, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { banSession, findSession } from '../bans/bans.ts'
import { acknowledgeScreenshot, findCommand, requestScreenshot } from '../commands/commands.ts'
import type { RunningCore } from '../context.ts'
import type { SessionContent } from '../sessions/model.ts'
import { answer, codeOf, hasFailed, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { runScheduled } from '../test/scheduled-database.ts'
import { credentialsOf } from '../test/visitor-credentials.ts'
import { renewSession, revokeSession } from './sessions.ts'

const cores = testCores({ count: 2 })

const grantLifetime = 900
const renewable = 7200
const operator = { subject: 'desk', workspaceId: undefined }

/** Creates a session whose page then sleeps until its grant has expired. */
async function sleepingSession(seconds = grantLifetime + 1) {
  const session = await cores.newSession()
  cores.advance(seconds)
  return session
}

function renew(
  session: SessionContent,
  { core = cores.core, key = randomUUID() as string, renewalToken = session.renewalToken } = {},
): Promise<SessionContent> {
  const { sessionId } = session
  return renewSession(core, { credentials: credentialsOf(session), sessionId, renewalToken, idempotencyKey: key }).then(
    ({ content }) => content,
  )
}

const stored = async ({ sessionId }: SessionContent) => findSession(cores.core, sessionId)

describe('a session whose grant has expired', () => {
  it('is renewed with the expired grant on any core, and keeps its conversation and its messages', async () => {
    const session = await cores.newSession()
    await cores.send(session, 'before')
    await answer(cores.core, session, 'meanwhile')
    cores.advance(20 * 60)
    for (const core of cores.cores)
      expect(await codeOf(cores.send(session, 'too early', { core }))).toBe('GrantExpired')
    const renewed = await renew(session, { core: cores.other })
    expect(renewed).toMatchObject({
      sessionId: session.sessionId,
      conversationId: session.conversationId,
      continuityState: 'continued',
    })
    await cores.send(renewed, 'after')
    expect(await cores.history(renewed)).toEqual(['before', 'meanwhile', 'after'])
    expect(await codeOf(cores.send(session, 'with the old grant'))).toBe('GrantExpired')
  })

  it('can be renewed until two hours after the end of its latest grant', async () => {
    const session = await sleepingSession(grantLifetime + renewable - 5)
    const renewed = await renew(session)
    expect(renewed.renewableUntil.getTime() - renewed.expiresAt.getTime()).toBe(renewable * 1000)
    cores.advance(grantLifetime + renewable + 1)
    for (const core of cores.cores) {
      expect(await codeOf(renew(renewed, { core }))).toBe('SessionExpired')
      expect(await codeOf(cores.send(renewed, 'too late', { core }))).toBe('SessionExpired')
    }
  })

  itLong('can be renewed for at most 24 hours after it began', async () => {
    let session = await cores.newSession()
    const { endsAt } = await stored(session)
    while (session.renewableUntil < endsAt) {
      cores.advance(grantLifetime + renewable - 60)
      session = await renew(session)
    }
    expect(session.renewableUntil).toEqual(endsAt)
    cores.advance((endsAt.getTime() - cores.now()) / 1000 - 5)
    const last = await renew(session)
    expect([last.expiresAt, last.renewableUntil]).toEqual([endsAt, endsAt])
    cores.advance(6)
    expect(await codeOf(renew(last))).toBe('SessionExpired')
  })

  it.each([
    ['revoked', 'SessionRevoked', (sessionId: string) => revokeSession(cores.core, sessionId)],
    ['banned', 'VisitorBanned', (sessionId: string) => banSession(cores.core, sessionId, '')],
  ])('cannot be renewed after it was %s meanwhile', async (_, code, end) => {
    const session = await sleepingSession()
    await end(session.sessionId)
    expect(await codeOf(renew(session, { core: cores.other }))).toBe(code)
  })

  it('is shown to operators as active until it can no longer be renewed', async () => {
    const session = await sleepingSession()
    const { sessions } = await clientsOf(cores.core, cores.workspaceId)
    const read = async () => (await sessions.getSession({ sessionId: session.sessionId })).session!
    const asleep = await read()
    expect([asleep.state, timestampDate(asleep.expiresAt!)]).toEqual(['active', session.renewableUntil])
    cores.advance(renewable)
    const over = await read()
    expect([over.state, timestampDate(over.expiresAt!)]).toEqual(['expired', session.renewableUntil])
  })
})

describe('the renewal token of a session whose grant has expired', () => {
  it('is accepted from every tab that slept, one after another or at once, and all tabs get the same new token', async () => {
    for (const atOnce of [false, true]) {
      const session = await sleepingSession()
      const attempts = [0, 1, 2, 3].map((index) => () => renew(session, { core: cores.cores[index % 2]! }))
      const tabs: SessionContent[] = []
      if (atOnce) tabs.push(...(await Promise.all(attempts.map((attempt) => attempt()))))
      else for (const attempt of attempts) tabs.push(await attempt())
      expect(new Set(tabs.map(({ renewalToken }) => renewalToken)).size).toBe(1)
      expect(tabs[0]!.renewalToken).not.toBe(session.renewalToken)
      expect((await stored(session)).renewal.generation).toBe(1)
    }
  })

  it('stays valid after a renewal until the new grant expires, even if the first response was lost', async () => {
    const session = await sleepingSession()
    const first = await renew(session)
    cores.advance(grantLifetime - 10)
    expect((await renew(session)).renewalToken).toBe(first.renewalToken)
    cores.advance(11)
    expect(await codeOf(renew(session))).toBe('GrantInvalid')
    expect(await codeOf(renew(first))).toBe('ok')
    expect(await codeOf(renew(session))).toBe('GrantInvalid')
  })

  it('returns the first response if the same renewal is repeated after a sleep, and the returned grant can be renewed', async () => {
    const session = await cores.newSession()
    cores.advance(600)
    const key = randomUUID()
    const lost = await renew(session, { key })
    cores.advance(30 * 60)
    expect(await renew(session, { key, core: cores.other })).toEqual(lost)
    expect(await codeOf(cores.send(lost, 'too early'))).toBe('GrantExpired')
    expect(await codeOf(renew(lost))).toBe('ok')
  })

  itLong.each([
    ['before the grant expires', grantLifetime - 5],
    ['with an expired grant', grantLifetime + 5],
  ])(
    'renews the session even if the process of a renewal %s died at any write and the page slept afterwards',
    async (_, at) => {
      await cores.untilOneSurvives(async (mortal) => {
        const session = await sleepingSession(at)
        const key = randomUUID()
        const died = await hasFailed(renew(session, { key, core: mortal }))
        cores.advance(30 * 60)
        const repeated = await renew(session, { key })
        const next = await renew(repeated)
        expect(await codeOf(cores.send(next, 'goes on'))).toBe('ok')
        expect((await stored(session)).renewal.generation).toBe(2)
        return died
      })
    },
  )
})

describe('the expiry of the latest grant', () => {
  const typesIn = async ({ conversationId }: SessionContent) =>
    (await cores.log(conversationId)).map(({ type }) => type)

  it('closes the session’s streams without an end event, but keeps the streams of a renewed session open', async () => {
    const [lapsing, renewing] = [await cores.newSession(), await cores.newSession()]
    const closing = [await cores.openStream(lapsing), await cores.openStream(lapsing, cores.other)]
    const open = await cores.openStream(renewing, cores.other)
    cores.advance(600)
    const renewed = await renew(renewing)
    cores.advance(grantLifetime - 600 + 1)
    for (const stream of closing) await until('the end of the stream', () => stream.ended)
    expect(closing.map(({ types }) => types)).toEqual([[], []])
    expect(await typesIn(lapsing)).toEqual([])
    await cores.send(renewed, 'still here')
    await until('the message', () => open.types.length > 0)
    expect(open).toMatchObject({ types: ['message.accepted'], ended: false })

    await answer(cores.core, lapsing, 'meanwhile')
    const resumed = await cores.openStream(await renew(lapsing), cores.other)
    await until('the message', () => resumed.types.length > 0)
    expect(resumed).toMatchObject({ types: ['message.received'], ended: false })
  })

  it('does not end a session that another core is renewing, and its streams stay open or can be opened again', async () => {
    await forAllAsync([fc.scheduler()], runs(50), async (scheduler) => {
      const session = await cores.newSession()
      const [here, there] = ['here', 'there'].map((name) =>
        cores.scheduledCore(scheduler, { name, atOnce: 'wakeups' }),
      ) as [RunningCore, RunningCore]
      const stream = await runScheduled(scheduler, cores.openStream(session, here))
      here.start()
      cores.advance(grantLifetime - 0.2)
      const renewed = await runScheduled(scheduler, renew(session, { core: there }))
      expect(await codeOf(cores.send(renewed, 'goes on'))).toBe('ok')
      const told = until('the message or the end', () => stream.ended || stream.types.length > 0)
      await runScheduled(scheduler, told)
      await runScheduled(scheduler, Promise.all([here.stop(), there.stop()]))
      expect(stream.types.filter((type) => type !== 'message.accepted')).toEqual([])
      expect(await typesIn(session)).toEqual(['message.accepted'])
    })
  })
})

describe('while the grant of a session has expired', () => {
  it('an operator can request a command, which is answered after a renewal or expires with the session', async () => {
    const session = await sleepingSession()
    const request = () =>
      requestScreenshot(cores.core, { sessionId: session.sessionId }, operator).then(({ content }) => content)
    const acknowledge = (by: SessionContent, requestId: string, idempotencyKey: string) =>
      acknowledgeScreenshot(cores.core, {
        credentials: credentialsOf(by),
        requestId,
        consent: 'granted',
        idempotencyKey,
      })
    const { commandId } = await request()
    const key = randomUUID()
    expect(await codeOf(acknowledge(session, commandId, key))).toBe('GrantExpired')
    const renewed = await renew(session)
    const { content } = await acknowledge(renewed, commandId, key)
    expect(content.state).toBe('granted')
    cores.advance(grantLifetime + renewable - 60)
    const late = await request()
    cores.advance(61)
    expect(await findCommand(cores.core, late.commandId)).toMatchObject({ state: 'expired' })
    expect(await codeOf(request())).toBe('SessionExpired')
  })

  const closed = (session: SessionContent, key: string, scope: 'continuity' | 'panel') =>
    cores.close(session, { key, scope }).then(({ content }) => content.state)

  it.each<[string, (session: SessionContent, key: string) => Promise<string>]>(
    someOf(
      [
        [
          'an identification',
          (session, key) => cores.identify(session, signed(key), { key }).then(({ sessionId }) => sessionId),
        ],
        ['a close', (session, key) => closed(session, key, 'continuity')],
        ['a close of the panel', (session, key) => closed(session, key, 'panel')],
      ],
      1,
    ),
  )('%s is rejected, and succeeds with the same key after the renewal', async (_, operation) => {
    const session = await sleepingSession()
    const key = randomUUID()
    expect(await codeOf(operation(session, key))).toBe('GrantExpired')
    const renewed = await renew(session)
    const first = await operation(renewed, key)
    expect(await operation(renewed, key)).toBe(first)
  })

  const assertions = new Map<string, string>()
  /** Returns the same assertion for the same key, signed at the first call. */
  function signed(key: string): string {
    const assertion = assertions.get(key) ?? cores.sign({ sub: key })
    assertions.set(key, assertion)
    return assertion
  }
})
