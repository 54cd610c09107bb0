import { describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import type { CoreContext } from '../context.ts'
import { testCores } from '../test/cores.ts'
import { authorizeStream, openStreamAt } from '../test/streams.ts'
import { credentialsOf, site } from '../test/visitor-credentials.ts'
import type { SessionContent } from './model.ts'

const cores = testCores({ count: 2 })

const seen = async (core: CoreContext) => {
  const { accessGrant } = await cores.newSession()
  return (await core.visitorAccess.authorize({ accessGrant, origin: site })).session
}

describe('an authorized session', () => {
  it('is reported as unchanged until this core receives the wake-up of a change', async () => {
    for (const core of cores.cores) {
      const session = await seen(core)
      expect(core.visitorAccess.isUnchanged(session)).toBe(true)
      await cores.core.sessions.revoke(session.sessionId, undefined)
      await until('the change is known', () => !core.visitorAccess.isUnchanged(session))
    }
  })

  it('ends a new stream without another wake-up if the session’s state changed before that stream opened', async () => {
    // This core runs no jobs, so no periodic check can end the stream.
    const core = cores.mortalCore(1000)
    const session = await seen(core)
    await core.sessions.revoke(session.sessionId, undefined)
    const closed = new Promise<void>((resolve) => {
      const silent = { opened() {}, event() {}, replayed() {}, advanced() {}, availability() {}, paused() {} }
      const sink = { ...silent, closed: () => resolve() }
      void core.streamSubscriptions.open({ id: 1, sink, session, epoch: 'e', start: {} })
    })
    await closed
  })

  it.each<[string, (session: SessionContent) => Promise<unknown>]>([
    ['session.revoked', ({ sessionId }) => cores.other.sessions.revoke(sessionId)],
    ['visitor.banned', ({ sessionId }) => cores.other.sessions.ban(sessionId, 'rude')],
    [
      'session.closed',
      (session) =>
        cores.other.sessions.close({ credentials: credentialsOf(session), scope: 'continuity', idempotencyKey: 'k' }),
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
    await cores.other.workspaces.setConnectionStatus(session.connectionId, 'disabled', undefined)
    await until('the change is known', () => !cores.core.visitorAccess.isUnchanged(session))
    await cores.other.workspaces.setConnectionStatus(session.connectionId, 'enabled', undefined)
  })
})
