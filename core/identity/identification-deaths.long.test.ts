import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { findSession } from '../bans/bans.ts'
import type { SessionContent } from '../sessions/model.ts'
import { hasFailed, newSubject, type TestCores, testCores } from '../test/cores.ts'

const cores = testCores()

/** Seconds after which an operation in progress is treated as abandoned. */
const abandonedAfterSeconds = 16

type Attempt = (how: { core?: TestCores['core']; key: string }) => Promise<SessionContent>
type Step = { attempt: Attempt; check: (content: SessionContent) => Promise<void> }

const cases: Record<string, () => Promise<Step>> = {
  async 'a first identification that continues its conversation'() {
    const sub = newSubject()
    const session = await cores.newSession()
    await cores.send(session, 'mine')
    const assertion = cores.sign({ sub, name: 'Ada' })
    return {
      attempt: (how) => cores.identify(session, assertion, how),
      async check(content) {
        expect(content).toMatchObject({ conversationId: session.conversationId, identityState: 'verified' })
        expect(content.sessionId).not.toBe(session.sessionId)
        expect(await cores.history(content)).toEqual(['mine'])
        await expect(cores.send(session, 'late')).rejects.toThrow('SessionClosed')
        const next = await cores.newVerified(sub)
        expect(await cores.history(next)).toEqual(['mine'])
      },
    }
  },

  async 'a first identification that continues another conversation'() {
    const sub = newSubject()
    const elsewhere = await cores.newVerified(sub)
    await cores.send(elsewhere, 'before')
    const session = await cores.newSession()
    const assertion = cores.sign({ sub, name: 'Ada' })
    return {
      attempt: (how) => cores.identify(session, assertion, how),
      async check(content) {
        expect(content).toMatchObject({ conversationId: elsewhere.conversationId, continuityState: 'continued' })
        expect(await cores.history(content)).toEqual(['before'])
        const events = await cores.core.database.collections.events
          .find({ conversationId: session.conversationId, type: 'session.identified' })
          .toArray()
        expect(events.map(({ sessionId }) => sessionId)).toEqual([session.sessionId])
      },
    }
  },

  async 'a change to another subject'() {
    const old = await cores.newVerified()
    await cores.send(old, "the old person's")
    const assertion = cores.sign({ sub: newSubject(), name: 'Ada' })
    return {
      attempt: (how) => cores.identify(old, assertion, how),
      async check(content) {
        expect(content.sessionId).not.toBe(old.sessionId)
        await expect(cores.send(old, 'late')).rejects.toThrow('SessionClosed')
        expect(await cores.history(content)).toEqual([])
        // The sessions are the first anonymous session, the verified session and one successor.
        const sessions = await cores.core.database.collections.sessions.countDocuments({
          clientInstanceId: (await findSession(cores.core, old.sessionId)).clientInstanceId,
        })
        expect(sessions).toBe(3)
      },
    }
  },

  async 'clearing an identity'() {
    const old = await cores.newVerified()
    return {
      attempt: (how) => cores.clear(old, how),
      async check(content) {
        expect(content).toMatchObject({ identityState: 'anonymous' })
        expect(content.sessionId).not.toBe(old.sessionId)
        await expect(cores.send(old, 'late')).rejects.toThrow('SessionClosed')
      },
    }
  },
}

describe.each(someOf(Object.entries(cases), 2))('a process that dies during %s', (_, begin) => {
  it('leaves a state that a repeat of the operation completes', async () => {
    await cores.untilOneSurvives(async (core, writes) => {
      const { attempt, check } = await begin()
      const key = randomUUID()
      const died = await hasFailed(attempt({ core, key }))
      // Before the lease has expired, the repeat cannot take over the operation.
      if (died && writes > 0) await expect(attempt({ key })).rejects.toThrow('OperationInProgress')
      cores.advance(abandonedAfterSeconds)
      const content = await attempt({ key })
      await check(content)
      await expect(attempt({ key })).resolves.toEqual(content)
      if (!died) expect(writes).toBeGreaterThan(2)
      return died
    })
  })

  it('leaves no partial change if the assertion has expired before the repeat', async () => {
    await cores.untilOneSurvives(async (core) => {
      const { attempt, check } = await begin()
      const key = randomUUID()
      const died = await hasFailed(attempt({ core, key }))
      // Let the assertion expire before the repeat.
      cores.advance(200)
      const content = await attempt({ key }).catch((error: Error) => error)
      if (content instanceof Error) {
        expect(content.message).toBe('IdentityAssertionExpired')
      } else await check(content)
      return died
    })
  })
})

describe('a first identification that is not repeated after its process died', () => {
  it('leaves the session active or closed, and in both cases the visitor’s next identification continues the conversation', async () => {
    await cores.untilOneSurvives(async (core) => {
      const sub = newSubject()
      const session = await cores.newSession()
      await cores.send(session, 'mine')
      const died = await hasFailed(cores.identify(session, cores.sign({ sub }), { core }))
      const { status } = await findSession(cores.core, session.sessionId)
      const next = await cores.newVerified(sub)
      expect(await cores.history(next)).toEqual(status === 'closed' ? ['mine'] : [])
      return died
    })
  })
})
