import fc from 'fast-check'
import { expect, it } from 'vitest'
import { runs } from '../../test/support/is-long.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { testCores } from '../test/cores.ts'
import { inTurn } from '../test/scheduled-database.ts'
import { authorizeStream, openStreamAt } from '../test/streams.ts'
import { revokeSession } from '../visitors/sessions.ts'
import { streamSubscriptionsOf } from './stream-subscriptions.ts'

const cores = testCores({ env: { REPLAY_WINDOW_EVENTS: '50' } })

it('a stream sends every event after its start position once and in order during concurrent writes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.nat(4),
      fc.option(fc.nat(4), { nil: undefined }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (scheduler, before, start, hints, isRevoked) => {
        const session = await cores.newSession()
        const { conversationId, sessionId } = session
        const write = (body: string) => sendAsAgent(cores.core, { conversationId, clientOperationId: body, body })
        for (let index = 0; index < before; index += 1) await write(`early-${index}`)
        const core = cores.scheduledCore(scheduler)
        const authorized = await authorizeStream(cores.core, session)
        const after = start === undefined ? undefined : Math.min(start, before)
        const from = after === undefined ? {} : { afterSequence: after }

        async function writeLate() {
          for (const [index, hasHint] of hints.entries()) {
            const { event } = await inTurn(scheduler, 'write', () => write(`late-${index}`))
            if (hasHint)
              await inTurn(scheduler, 'hint', async () => {
                core.bus.emit('advanced', conversationId, { sequence: event.sequence, closed: false })
              })
          }
          if (!isRevoked) return
          await inTurn(scheduler, 'revoke', () => revokeSession(cores.core, sessionId))
          await inTurn(scheduler, 'hint', async () => {
            core.bus.emit('changed', [sessionId])
          })
        }

        const [stream] = await scheduler.waitFor(Promise.all([openStreamAt(core, authorized, from), writeLate()]))
        // In production, a job calls `checkSome`.
        for (let round = 0; round < 10; round += 1) await scheduler.waitFor(streamSubscriptionsOf(core).checkSome())
        await scheduler.waitIdle()
        const last = before + hints.length
        if (after !== undefined) expect(stream.from).toBe(after)
        const messages = Array.from({ length: last - stream.from }, (_, index) => stream.from + index + 1)
        const sent = stream.sequences.filter((_, index) => stream.types[index] === 'message.received')
        // The event that revokes the session may be sent before messages that the feed has not read
        // yet. These messages are then skipped.
        expect(sent).toEqual(isRevoked ? messages.slice(0, sent.length) : messages)
        expect(stream.types.at(-1) === 'session.revoked').toBe(isRevoked)
        expect(stream.ended).toBe(isRevoked)
      },
    ),
    runs(100),
  )
})
