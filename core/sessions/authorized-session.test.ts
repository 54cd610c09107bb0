import { describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { banSession } from '../bans/bans.ts'
import type { RunningCore } from '../context.ts'
import { streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import { testCores } from '../test/cores.ts'
import { authorizeStream, openStreamAt } from '../test/streams.ts'
import { credentialsOf, site } from '../test/visitor-credentials.ts'
import { closeSession, revokeSession } from '../visitors/sessions.ts'
import { setConnectionStatus } from '../workspaces/workspaces.ts'
import type { SessionContent } from './model.ts'
import { visitorAccessOf } from './visitor-access.ts'

const cores = testCores({ count: 2 })

const seen = async (core: RunningCore) => {
  const { accessGrant } = await cores.newSession()
  return (await visitorAccessOf(core).authorize({ accessGrant, origin: site })).session
}

describe('an authorized session', () => {
  it('is reported as unchanged until this core receives the wake-up of a change', async () => {
    for (const core of cores.cores) {
      const session = await seen(core)
      expect(visitorAccessOf(core).isUnchanged(session)).toBe(true)
      await revokeSession(cores.core, session.sessionId, undefined)
      await until('the change is known', () => !visitorAccessOf(core).isUnchanged(session))
    }
  })

  it('ends a new stream without another wake-up if the session’s state changed before that stream opened', async () => {
    // This core runs no jobs, so no periodic check can end the stream.
    const core = cores.mortalCore(1000)
    const session = await seen(core)
    await revokeSession(core, session.sessionId, undefined)
    const closed = new Promise<void>((resolve) => {
      const silent = { opened() {}, event() {}, replayed() {}, advanced() {}, availability() {}, paused() {} }
      const sink = { ...silent, closed: () => resolve() }
      void streamSubscriptionsOf(core).open({ id: 1, sink, session, epoch: 'e', start: {} })
    })
    await closed
  })

  it.each<[string, (session: SessionContent) => Promise<unknown>]>([
    ['session.revoked', ({ sessionId }) => revokeSession(cores.other, sessionId)],
    ['visitor.banned', ({ sessionId }) => banSession(cores.other, sessionId, 'rude')],
    [
      'session.closed',
      (session) =>
        closeSession(cores.other, { credentials: credentialsOf(session), scope: 'continuity', idempotencyKey: 'k' }),
    ],
  ])('gives its stream %s, although the session ended while no core had the stream', async (type, end) => {
    const session = await cores.newSession()
    const { event } = await cores.send(session, 'before')
    await end(session)
    const stream = await openStreamAt(cores.core, await authorizeStream(cores.core, session, true), {
      afterSequence: event.sequence,
    })
    await until('the end', () => stream.ended)
    expect(stream.types).toEqual([type])
  })

  it('is reported as changed once its connection is disabled', async () => {
    const session = await seen(cores.core)
    await setConnectionStatus(cores.other, session.connectionId, 'disabled', undefined)
    await until('the change is known', () => !visitorAccessOf(cores.core).isUnchanged(session))
    await setConnectionStatus(cores.other, session.connectionId, 'enabled', undefined)
  })
})
