import { describe, expect, it } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { banSession } from '../bans/bans.ts'
import { createBus } from '../bus.ts'
import type { RunningCore } from '../context.ts'
import { unavailable } from '../errors.ts'
import { type EventDraft, logOf } from '../log/event-log.ts'
import { type StreamSubscription, streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import { bareCore } from '../test/core-with.ts'
import { newSubject, testCores } from '../test/cores.ts'
import { authorizeStream, openStreamAt } from '../test/streams.ts'
import { credentialsOf, site } from '../test/visitor-credentials.ts'
import { closeSession, revokeSession } from '../visitors/sessions.ts'
import { setConnectionStatus } from '../workspaces/workspaces.ts'
import type { SessionContent } from './model.ts'
import { sessionCheckOf } from './session-check.ts'
import { sessionStoreOf } from './session-store.ts'
import { visitorAccessOf } from './visitor-access.ts'

type EventLog = ReturnType<typeof logOf>
type StreamSubscriptions = ReturnType<typeof streamSubscriptionsOf>

const cores = testCores({ count: 2 })

const ends = ['session.revoked', 'visitor.banned', 'connection.disabled', 'session.closed', 'session.expired']

describe('the end of a session', () => {
  it('closes its stream even if the operation id of a message equals the name of the end event', async () => {
    const session = await cores.newSession()
    const stream = await cores.openStream(session)
    for (const key of [...ends, 'session.identified']) await cores.send(session, 'a message', { key })
    await revokeSession(cores.core, session.sessionId)
    await until('the end of the stream', () => stream.ended)
    expect(stream.types.at(-1)).toBe('session.revoked')
  })

  it('closes its stream on another core even if the operation id of a message equals the name of the end event', async () => {
    const session = await cores.newSession()
    const stream = await cores.openStream(session, cores.cores[1])
    await cores.send(session, 'a message', { key: 'visitor.banned' })
    await banSession(cores.core, session.sessionId, '')
    await until('the end of the stream', () => stream.ended)
    expect(stream.types.at(-1)).toBe('visitor.banned')
  })

  it('succeeds during an identification even if a message has the operation id `session.identified`', async () => {
    const session = await cores.newSession()
    await cores.send(session, 'a message', { key: 'session.identified' })
    const identified = await cores.identify(session, await cores.sign({ sub: 'customer-1' }))
    expect(identified.identityState).toBe('verified')
  })

  it.each<[string, EventLog['append']]>([
    ['is refused', () => Promise.reject(unavailable())],
    ['hangs', () => new Promise(() => {})],
    ['is found in the log, far behind the stream', async (draft) => ({ event: endAt(draft, 1), replayed: true })],
  ])('ends the local streams within a second when the write of the end %s', async (_, append) => {
    const session = await cores.newSession()
    const other = await cores.newSession()
    const others = await cores.openStream(other)
    await cores.send(session, 'a message')
    const { core } = cores
    const own = bareCore({ bus: createBus(), logger: core.logger, now: cores.now })
    visitorAccessOf.set(own, visitorAccessOf(core))
    logOf.set(own, { append } as EventLog)
    streamSubscriptionsOf.set(own, streamSubscriptionsOf(core))
    const watch = sessionCheckOf(own)
    const stream = await cores.openStream(session)
    await until('the message', () => stream.types.length === 1)
    await sessionStoreOf(core).end(session.sessionId, 'revoked')
    await watch.checkSome()
    expect(stream.ended).toBe(true)
    expect(stream.types).toEqual(['message.accepted', 'session.revoked'])
    expect(others.ended).toBe(false)
  })
})

describe('a change', () => {
  /** Watches `count` sessions of ten connections on two sites. Counts how often a change looks at one. */
  function watchMany(count: number) {
    const seen = { looks: 0, held: [] as string[] }
    const bus = createBus()
    let observer!: Parameters<StreamSubscriptions['observe']>[0]
    const core = bareCore({ bus, logger: cores.core.logger, now: cores.now })
    const grantExpiresAt = new Date(Date.now() + 60_000)
    const access = { isUnchanged: () => true, endOf: async () => ({ grantExpiresAt }) }
    visitorAccessOf.set(core, access as unknown as ReturnType<typeof visitorAccessOf>)
    streamSubscriptionsOf.set(core, {
      observe(given: typeof observer) {
        observer = given
      },
      hold: (sessionId: string) => void seen.held.push(sessionId),
      release() {},
    } as unknown as StreamSubscriptions)
    sessionCheckOf(core)
    const streams = Array.from({ length: count }, (_, index) => {
      const session = { sessionId: `ses_${index}`, publicSiteKey: `site_${index % 2}`, grantExpiresAt: new Date() }
      Object.defineProperty(session, 'connectionId', {
        get() {
          seen.looks += 1
          return `con_${index % 10}`
        },
      })
      return { session } as unknown as StreamSubscription
    })
    for (const stream of streams) observer.opened(stream)
    seen.looks = 0
    return { seen, bus, end: (index: number) => observer.ended(streams[index]!) }
  }

  it('of another object looks at no session with an open stream', () => {
    const { seen, bus } = watchMany(2_000)
    for (let hint = 0; hint < 100; hint += 1) bus.emit('changed', ['feed wsp_1', `cnv_${hint}`])
    expect(seen).toEqual({ looks: 0, held: [] })
  })

  it('holds each session that it concerns once: of the same id, connection or site, while its stream is open', () => {
    const { seen, bus, end } = watchMany(20)
    bus.emit('changed', ['ses_3', 'con_3', 'other'])
    expect(seen.held.toSorted()).toEqual(['ses_13', 'ses_3'])
    end(13)
    seen.held = []
    bus.emit('changed', ['site_1', 'con_3'])
    expect(seen.held.toSorted()).toEqual([1, 3, 5, 7, 9, 11, 15, 17, 19].map((index) => `ses_${index}`).toSorted())
  })
})

const endAt = (draft: EventDraft, sequence: number) => ({ ...draft, sequence, occurredAt: new Date() })

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

const setStatus = (status: 'enabled' | 'disabled', core = cores.core) =>
  setConnectionStatus(core, cores.connectionId, status, undefined)

describe('a connection', () => {
  it.each(someOf(['by one call', 'by a repeat after the first process died before the wake-up'], 1))(
    'keeps its sessions ended after it was disabled %s and enabled again',
    async (how) => {
      const sub = newSubject()
      const [streaming, silent] = [await cores.newSession(), await cores.newSession()]
      const verified = await cores.newVerified(sub)
      await cores.send(verified, 'before')
      const streams = [await cores.openStream(streaming), await cores.openStream(streaming, cores.cores[1])]
      if (how !== 'by one call') await expect(setStatus('disabled', cores.mortalCore(1))).rejects.toThrow()
      await setStatus('disabled')
      for (const stream of streams) {
        await until('the end of the stream', () => stream.ended)
        expect(stream.types).toEqual(['connection.disabled'])
      }
      await expect(cores.newSession()).rejects.toThrow('ConnectionDisabled')
      await setStatus('enabled')
      for (const core of cores.cores) {
        for (const session of [streaming, silent, verified]) {
          await expect(cores.send(session, 'late', { core })).rejects.toThrow('ConnectionDisabled')
          await expect(cores.renew(session, { core })).rejects.toThrow('ConnectionDisabled')
          await expect(cores.openStream(session, core)).rejects.toThrow('ConnectionDisabled')
        }
        await until('the connection', () =>
          cores.newSession(core).then(
            () => true,
            () => undefined,
          ),
        )
      }
      const next = await cores.newVerified(sub)
      const stream = await cores.openStream(next)
      await cores.send(next, 'after')
      await until('the message', () => stream.types.filter((type) => type === 'message.accepted').length === 2)
      expect(stream.ended).toBe(false)
      expect(await cores.history(next)).toEqual(['before', 'after'])
    },
  )

  it('keeps its sessions if an operator enables it while it is already enabled', async () => {
    const session = await cores.newSession()
    await setStatus('enabled')
    expect((await cores.send(session, 'hello')).replayed).toBe(false)
  })
})
