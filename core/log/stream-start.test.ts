import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'
import { inTurn } from '../test-interleaving.ts'
import type { StreamSubscription } from './stream-subscriptions.ts'

const database = testDatabase()
let cores: TestCores
beforeAll(async () => {
  cores = await startTestCores(database, { env: { REPLAY_WINDOW_EVENTS: '50' } })
})
afterAll(() => cores.stop())

/** A stream on another core, and the events that its sink received. */
async function open(core: TestCores['core'], accessGrant: string, conversationId: string, afterSequence?: number) {
  const reader = { from: 0, sequences: [] as number[], types: [] as string[], closed: false }
  let subscription: StreamSubscription | undefined
  const { session } = await cores.core.visitorAccess.authorize({ accessGrant, origin: 'https://shop.example' })
  const [conversation] = await cores.core.stores.conversations.find([conversationId])
  subscription = await core.subscriptions.open({
    id: 1,
    session,
    epoch: conversation!.epoch,
    start: afterSequence === undefined ? {} : { afterSequence },
    sink: {
      opened: (_id, _session, { sequence }) => {
        reader.from = sequence
      },
      event(_ids, { sequence, type }) {
        reader.sequences.push(sequence)
        reader.types.push(type)
      },
      advanced() {},
      paused: () => setImmediate(() => core.subscriptions.resume(subscription!)),
      closed: () => {
        reader.closed = true
      },
    },
  })
  return reader
}

it('sends every event after its start once and in order while events are written', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.nat(4),
      fc.option(fc.nat(4), { nil: undefined }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (scheduler, before, start, hints, isRevoked) => {
        const { conversationId, accessGrant, sessionId } = await cores.newSession()
        const write = (body: string) =>
          cores.core.messages.sendAsAgent({ conversationId, clientOperationId: body, body })
        for (let index = 0; index < before; index += 1) await write(`early-${index}`)
        const core = cores.interleavedCore(scheduler)
        const after = start === undefined ? undefined : Math.min(start, before)

        async function writeLate() {
          for (const [index, hasHint] of hints.entries()) {
            const { event } = await inTurn(scheduler, 'write', () => write(`late-${index}`))
            if (hasHint)
              await inTurn(scheduler, 'hint', async () => {
                core.bus.emit('advanced', conversationId, { sequence: event.sequence, closed: false })
              })
          }
          if (!isRevoked) return
          await inTurn(scheduler, 'revoke', () => cores.core.sessions.revoke(sessionId))
          await inTurn(scheduler, 'hint', async () => {
            core.bus.emit('changed', [sessionId])
          })
        }

        const [reader] = await scheduler.waitFor(
          Promise.all([open(core, accessGrant, conversationId, after), writeLate()]),
        )
        // In production a job calls this.
        for (let round = 0; round < 10; round += 1) await scheduler.waitFor(core.subscriptions.checkSome())
        await scheduler.waitIdle()
        const last = before + hints.length
        if (after !== undefined) expect(reader.from).toBe(after)
        const messages = Array.from({ length: last - reader.from }, (_, index) => reader.from + index + 1)
        const sent = reader.sequences.filter((_, index) => reader.types[index] === 'message.received')
        // The end of the session may be sent before the messages of a slow log.
        expect(sent).toEqual(isRevoked ? messages.slice(0, sent.length) : messages)
        expect(reader.types.at(-1) === 'session.revoked').toBe(isRevoked)
        expect(reader.closed).toBe(isRevoked)
      },
    ),
    { numRuns: 40 },
  )
})
