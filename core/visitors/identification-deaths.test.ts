import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'
import type { SessionContent } from './session-content.ts'

const database = testDatabase()
let cores: TestCores
beforeAll(async () => {
  cores = await startTestCores(database)
})
afterAll(() => cores.stop())

/** Seconds after which an operation in progress counts as abandoned. */
const abandonedAfterSeconds = 16

type Attempt = (how: { core?: TestCores['core']; key: string }) => Promise<SessionContent>
type Step = { attempt: Attempt; check: (content: SessionContent) => Promise<void> }

const cases: Record<string, () => Promise<Step>> = {
  async 'a first identification that continues its conversation'() {
    const sub = `customer-${randomUUID()}`
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
        const next = await cores.identify(await cores.newSession(), cores.sign({ sub }))
        expect(await cores.history(next)).toEqual(['mine'])
      },
    }
  },

  async 'a first identification that continues another conversation'() {
    const sub = `customer-${randomUUID()}`
    const elsewhere = await cores.identify(await cores.newSession(), cores.sign({ sub }))
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
    const old = await cores.identify(await cores.newSession(), cores.sign({ sub: `customer-${randomUUID()}` }))
    await cores.send(old, "the old person's")
    const assertion = cores.sign({ sub: `customer-${randomUUID()}`, name: 'Ada' })
    return {
      attempt: (how) => cores.identify(old, assertion, how),
      async check(content) {
        expect(content.sessionId).not.toBe(old.sessionId)
        await expect(cores.send(old, 'late')).rejects.toThrow('SessionClosed')
        expect(await cores.history(content)).toEqual([])
        // The anonymous session, the old one and one successor.
        const sessions = await cores.core.database.collections.sessions.countDocuments({
          clientInstanceId: (await cores.core.sessions.find(old.sessionId)).clientInstanceId,
        })
        expect(sessions).toBe(3)
      },
    }
  },

  async 'clearing an identity'() {
    const old = await cores.identify(await cores.newSession(), cores.sign({ sub: `customer-${randomUUID()}` }))
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

describe.each(Object.entries(cases))('a process that dies during %s', (_, begin) => {
  it('leaves a state that a repeat completes, after any write', async () => {
    for (let writes = 0; ; writes += 1) {
      const { attempt, check } = await begin()
      const key = randomUUID()
      const died = await attempt({ core: cores.mortalCore(writes), key }).then(
        () => false,
        () => true,
      )
      // The repeat waits a while before it takes the operation over.
      if (died && writes > 0) await expect(attempt({ key })).rejects.toThrow('OperationInProgress')
      cores.advance(abandonedAfterSeconds)
      const content = await attempt({ key })
      await check(content)
      await expect(attempt({ key })).resolves.toEqual(content)
      if (!died) {
        expect(writes).toBeGreaterThan(2)
        return
      }
    }
  })

  it('leaves no partial change when the repeat comes too late', async () => {
    for (let writes = 0; ; writes += 1) {
      const { attempt, check } = await begin()
      const key = randomUUID()
      const died = await attempt({ core: cores.mortalCore(writes), key }).then(
        () => false,
        () => true,
      )
      // By now the assertion has expired.
      cores.advance(200)
      const content = await attempt({ key }).catch((error: Error) => error)
      if (content instanceof Error) {
        expect(content.message).toBe('IdentityAssertionExpired')
      } else await check(content)
      if (!died) return
    }
  })
})

describe('a process that dies during a first identification without a repeat', () => {
  it('leaves the session active, or the subject’s next identification continues its conversation', async () => {
    for (let writes = 0; ; writes += 1) {
      const sub = `customer-${randomUUID()}`
      const session = await cores.newSession()
      await cores.send(session, 'mine')
      const died = await cores.identify(session, cores.sign({ sub }), { core: cores.mortalCore(writes) }).then(
        () => false,
        () => true,
      )
      const { status } = await cores.core.sessions.find(session.sessionId)
      const next = await cores.identify(await cores.newSession(), cores.sign({ sub }))
      expect(await cores.history(next)).toEqual(status === 'closed' ? ['mine'] : [])
      if (!died) return
    }
  })
})
