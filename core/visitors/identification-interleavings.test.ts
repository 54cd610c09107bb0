import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { testDatabase } from '../../test/support/test-database.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'
import type { SessionContent } from './session-content.ts'

const database = testDatabase()
let cores: TestCores
beforeAll(async () => {
  cores = await startTestCores(database)
})
afterAll(() => cores.stop())

/**
 * Operations on one anonymous session at the same time. Each runs on its own core. It may die after
 * some writes, or stop before a database call until the others are done.
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

/** Continues stopped attempts one after another once all others are done. */
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

const codeOf = (error: { code?: ErrorCode; message: string }) =>
  error.code === undefined ? error.message : ErrorCode[error.code]
/** Errors after which a client does not repeat its request. */
const finalRefusals = ['SESSION_CLOSED', 'IDENTITY_ASSERTION_REPLAYED', 'IDEMPOTENCY_CONFLICT']

describe('identifications, sends, closes and process deaths in any order', () => {
  it('lose no acknowledged message, give one result per operation and leave one active session', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(anyAttempt, { minLength: 2, maxLength: 4 }),
        fc.boolean(),
        async (scheduler, planned, hasOpen) => {
          const { core } = cores
          const subjects = { ada: `ada-${randomUUID()}`, grace: `grace-${randomUUID()}` }
          const earlier = hasOpen && (await cores.identify(await cores.newSession(), cores.sign({ sub: subjects.ada })))
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
                await at.messages.sendAsAgent({ conversationId, clientOperationId: key, body })
              }
            }
            const turn = async (call: number, label: string) => {
              if (call === plan.stopsBefore) await stops.stop()
              await scheduler.schedule(Promise.resolve(), `${plan.what} ${index}: ${label}`)
            }
            const first = cores.scheduledCore(turn, plan.diesAfter)
            const outcome = await once(first).then(() => 'ok', codeOf)
            stops.done()
            return async () => {
              // Without a response the client repeats the operation with its key.
              if (outcome !== 'ok' && !finalRefusals.includes(outcome)) {
                await once(core).catch((error) => expect(finalRefusals).toContain(codeOf(error)))
              }
            }
          }

          const repeats = await scheduler.waitFor(Promise.all(planned.map(attempt)))
          cores.advance(16)
          for (const repeat of repeats) await repeat()

          const { status } = await core.sessions.find(session.sessionId)
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
          const next = await cores.identify(await cores.newSession(), cores.sign({ sub: winner.sub }))
          expect(next.conversationId).toBe(winner.content.conversationId)
          for (const sub of Object.values(subjects).filter((each) => each !== winner.sub)) {
            const other = await cores.identify(await cores.newSession(), cores.sign({ sub }))
            expect(other.conversationId).not.toBe(winner.content.conversationId)
          }
          const { clientInstanceId } = await core.sessions.find(session.sessionId)
          const alive = await core.database.collections.sessions.countDocuments({
            clientInstanceId,
            status: 'active',
            provisionalFor: { $exists: false },
          })
          expect(alive).toBe(1)
        },
      ),
      { numRuns: 60 },
    )
  }, 240_000)
})
