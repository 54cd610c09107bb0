import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { isLong, today } from '../../test/support/is-long.ts'
import { banSession, findSession, unbanSession } from '../bans/bans.ts'
import type { SessionContent } from '../sessions/model.ts'
import { codeOf, newSubject, type TestCores, testCores } from '../test/cores.ts'
import { credentialsOf, site } from '../test/visitor-credentials.ts'
import { reportPage, revokeSession } from '../visitors/sessions.ts'

const cores = testCores()

/** A run lets the other operation begin at one of several calls of the database, other ones each day. */
const everyCall = isLong ? 3 : 13

type Attempt = (session: SessionContent, sub: string, core: TestCores['core']) => Promise<SessionContent>
const identify: Attempt = (session, sub, core) => cores.identify(session, cores.sign({ sub, name: 'Ada L.' }), { core })

const attempts: Record<string, { isVerified: boolean; attempt: Attempt }> = {
  'a first identification': { isVerified: false, attempt: identify },
  'another identification of the same visitor': { isVerified: true, attempt: identify },
  'an identification as another visitor': {
    isVerified: true,
    attempt: (session, _, core) => identify(session, newSubject(), core),
  },
  'clearing an identity': { isVerified: true, attempt: (session, _, core) => cores.clear(session, { core }) },
}

const endings: Record<string, { end: (session: SessionContent) => Promise<unknown>; code: string }> = {
  banned: { end: ({ sessionId }) => banSession(cores.core, sessionId, 'spam'), code: 'VisitorBanned' },
  revoked: { end: ({ sessionId }) => revokeSession(cores.core, sessionId), code: 'SessionRevoked' },
  closed: { end: (session) => cores.close(session), code: 'SessionClosed' },
}

type Outcome = { result: SessionContent | undefined; code: string; endCode: string }

/** Runs an attempt once for each of its database calls, and the ending before that call. */
async function interrupted(
  begin: () => Promise<{
    attempt: (core: TestCores['core']) => Promise<SessionContent>
    end: () => Promise<unknown>
    check: (outcome: Outcome) => Promise<void>
  }>,
) {
  for (let at = 1 + (today % everyCall), reached = true; reached; at += everyCall) {
    const { attempt, end, check } = await begin()
    let endCode = ''
    reached = false
    const core = cores.coreWithHook(async (call) => {
      if (call !== at) return
      reached = true
      endCode = await codeOf(end())
    })
    let result: SessionContent | undefined
    const code = await codeOf(
      attempt(core).then((content) => {
        result = content
      }),
    )
    if (reached) await check({ result, code, endCode })
  }
}

const activeSessions = async (old: SessionContent) => {
  const { clientInstanceId } = await findSession(cores.core, old.sessionId)
  return cores.core.database.collections.sessions
    .find({ clientInstanceId, status: 'active' })
    .map(({ _id }) => _id as string)
    .toArray()
}

async function begun(isVerified: boolean, sub: string) {
  const session = await cores.newSession()
  return isVerified ? cores.identify(session, cores.sign({ sub })) : session
}

describe.each(Object.entries(attempts))('when a session ends during any step of %s', (_, { isVerified, attempt }) => {
  it.each(Object.entries(endings))('and is %s, no session remains but one that the answer names', async (_, ending) => {
    await interrupted(async () => {
      const sub = newSubject()
      const old = await begun(isVerified, sub)
      return {
        attempt: (core) => attempt(old, sub, core),
        end: () => ending.end(old),
        async check({ result, code, endCode }) {
          if (!result) expect(code).toBe(ending.code)
          // An answer names only an identity that was stored.
          else expect((await findSession(cores.core, result.sessionId)).identity?.displayName).toBe(result.displayName)
          // A close that finds the session replaced is refused.
          if (endCode !== 'ok') expect([result !== undefined, endCode]).toEqual([true, 'SessionClosed'])
          const active = await activeSessions(old)
          expect(active.filter((id) => id !== result?.sessionId)).toEqual([])
          if (ending.code === 'VisitorBanned') expect(active).toEqual([])
          expect(await codeOf(cores.send(old, 'late'))).not.toBe('ok')
        },
      }
    })
  })
})

describe.each([
  ['an anonymous session', false],
  ['a session of another visitor', true],
])('when an operator bans a visitor on another device during any step of an identification by %s', (_, isVerified) => {
  it('the visitor has no active session, and the answer is the refusal or a session that the ban has ended', async () => {
    await interrupted(async () => {
      const sub = newSubject()
      const elsewhere = await cores.newVerified(sub)
      const old = await begun(isVerified, newSubject())
      return {
        attempt: (core) => identify(old, sub, core),
        end: () => banSession(cores.core, elsewhere.sessionId, 'spam'),
        async check({ result, code }) {
          if (!result) expect(code).toBe('VisitorBanned')
          const active = await activeSessions(old)
          expect(active.filter((id) => id !== old.sessionId)).toEqual([])
        },
      }
    })
  })
})

it('an assertion of a banned visitor is not used up', async () => {
  const sub = newSubject()
  const banned = await cores.newVerified(sub)
  await banSession(cores.core, banned.sessionId, 'spam')
  const session = await cores.newSession()
  const assertion = cores.sign({ sub })
  expect(await codeOf(cores.identify(session, assertion))).toBe('VisitorBanned')
  await unbanSession(cores.core, banned.sessionId)
  expect(await cores.identify(session, assertion)).toMatchObject({ identityState: 'verified' })
})

describe('the page of a session', () => {
  it('is kept by a first identification, and not by a change of the visitor or a logout', async () => {
    const pageContext = { url: `${site}/cart`, title: 'Cart' }
    const session = await cores.newSession()
    await reportPage(cores.core, {
      credentials: credentialsOf(session),
      pageContext,
      idempotencyKey: randomUUID(),
    })
    const pageOf = async ({ sessionId }: SessionContent) => {
      const { pageContext: page, pageContextAt } = await findSession(cores.core, sessionId)
      return [page, pageContextAt !== undefined]
    }
    const ada = await cores.identify(session, cores.sign({ sub: newSubject() }))
    expect(await pageOf(ada)).toEqual([pageContext, true])
    const grace = await cores.identify(ada, cores.sign({ sub: newSubject() }))
    expect(await pageOf(grace)).toEqual([undefined, false])
    expect(await pageOf(await cores.clear(grace))).toEqual([undefined, false])
  })
})
