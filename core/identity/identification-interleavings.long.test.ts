import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runs } from '../../test/support/is-long.ts'
import { findSession } from '../bans/bans.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import type { SessionContent } from '../sessions/model.ts'
import { codeOf, type TestCores, testCores } from '../test/cores.ts'

const cores = testCores()

/**
 * Generates one of several concurrent operations on an anonymous session. Each operation runs on its own core. That
 * core may die after some writes, or stop before a database call until the other operations have ended.
 */
const attemptOf = <What extends string>(what: What, calls: number) =>
  fc.record({
    what: fc.constant(what),
    subject: fc.constantFrom('ada' as const, 'ada' as const, 'grace' as const),
    diesAfter: fc.option(fc.nat({ max: 8 }), { freq: 2, nil: undefined }),
    stopsBefore: fc.option(fc.integer({ min: 1, max: calls }), { freq: 3, nil: undefined }),
  })
const anyAttempt = fc.oneof(
  { weight: 3, arbitrary: attemptOf('identify', 24) },
  { weight: 3, arbitrary: attemptOf('send', 5) },
  { weight: 1, arbitrary: attemptOf('close', 7) },
  { weight: 1, arbitrary: attemptOf('agent', 3) },
)

/** Continues stopped attempts one after another when every other attempt has ended or stopped. */
function createStops(count: number) {
  const stopped: (() => void)[] = []
  let running = count
  const continueNext = () => {
    if (running > 0 || stopped.length === 0) return
    running += 1
    stopped.shift()!()
  }
  const leaveRunning = () => {
    running -= 1
    continueNext()
  }
  return {
    done: leaveRunning,
    stop: () =>
      new Promise<void>((resolve) => {
        stopped.push(resolve)
        leaveRunning()
      }),
  }
}

/** Errors after which a client does not repeat its request. */
const finalRefusals = ['SessionClosed', 'IdentityAssertionReplayed', 'IdempotencyConflict']

describe('identifications, sends, closes and process deaths in any order', () => {
  it('lose no acknowledged message, have one result per operation and leave one active session', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(anyAttempt, { minLength: 2, maxLength: 4 }),
        fc.boolean(),
        async (scheduler, planned, hasOpen) => {
          const { core } = cores
          const subjects = { ada: `ada-${randomUUID()}`, grace: `grace-${randomUUID()}` }
          const earlier = hasOpen && (await cores.newVerified(subjects.ada))
          if (earlier) await cores.send(earlier, 'before')
          const session = await cores.newSession()
          const acknowledged: { body: string; key: string }[] = []
          const identified: { content: SessionContent; sub: string }[] = []
          let closed = false
          const stops = createStops(planned.length)

          async function attempt(plan: (typeof planned)[0], index: number) {
            const key = randomUUID()
            const body = `${plan.what} ${index}`
            const assertion = plan.what === 'identify' ? cores.sign({ sub: subjects[plan.subject] }) : ''
            const once = async (at: TestCores['core']) => {
              if (plan.what === 'identify') {
                const content = await cores.identify(session, assertion, { core: at, key })
                for (const other of identified) expect(content).toEqual(other.content)
                identified.push({ content, sub: subjects[plan.subject] })
              } else if (plan.what === 'send') {
                await cores.send(session, body, { core: at, key })
                acknowledged.push({ body, key })
              } else if (plan.what === 'close') {
                await cores.close(session, { core: at, key })
                closed = true
              } else {
                const { conversationId } = session
                await sendAsAgent(at, { conversationId, clientOperationId: key, body })
              }
            }
            const first = cores.scheduledCore(scheduler, {
              name: `${plan.what} ${index}`,
              beforeCall: (call) => (call === plan.stopsBefore ? stops.stop() : undefined),
              writes: plan.diesAfter,
            })
            const outcome = await codeOf(once(first))
            stops.done()
            return async () => {
              // Without a response, the client repeats the operation with the same key.
              if (outcome !== 'ok' && !finalRefusals.includes(outcome)) {
                expect(['ok', ...finalRefusals]).toContain(await codeOf(once(core)))
              }
            }
          }

          const repeats = await scheduler.waitFor(Promise.all(planned.map(attempt)))
          cores.advance(16)
          for (const repeat of repeats) await repeat()

          const { status } = await findSession(core, session.sessionId)
          expect(closed && identified.length > 0).toBe(false)
          expect(status).toBe(closed || identified.length > 0 ? 'closed' : 'active')
          const [winner] = identified
          if (!winner) return
          for (const content of identified) expect(content).toEqual(winner)
          const seen = await cores.history(winner.content)
          for (const { body, key } of acknowledged) {
            expect(seen.filter((each) => each === body)).toHaveLength(1)
            // The client repeats a message with an unknown outcome in its new session.
            expect((await cores.send(winner.content, body, { key })).replayed).toBe(true)
          }
          await expect(cores.history(session)).rejects.toThrow('SessionClosed')
          const next = await cores.newVerified(winner.sub)
          expect(next.conversationId).toBe(winner.content.conversationId)
          for (const sub of Object.values(subjects).filter((each) => each !== winner.sub)) {
            const other = await cores.newVerified(sub)
            expect(other.conversationId).not.toBe(winner.content.conversationId)
          }
          const { clientInstanceId } = await findSession(core, session.sessionId)
          const alive = await core.database.collections.sessions.countDocuments({
            clientInstanceId,
            status: 'active',
            provisionalFor: { $exists: false },
          })
          expect(alive).toBe(1)
        },
      ),
      runs(60, 10),
    )
  })
})
