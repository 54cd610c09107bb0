import { describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { banSession } from '../bans/bans.ts'
import { createBus } from '../bus.ts'
import { unavailable } from '../errors.ts'
import type { EventDraft } from '../log/event-draft.ts'
import type { EventLog } from '../log/event-log.ts'
import type { StreamSubscription } from '../streams/session-streams.ts'
import type { StreamSubscriptions } from '../streams/stream-subscriptions.ts'
import { streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import { testCores } from '../test/cores.ts'
import { revokeSession } from '../visitors/sessions.ts'
import { createSessionCheck } from './session-check.ts'
import { sessionStoreOf } from './session-store.ts'
import { visitorAccessOf } from './visitor-access.ts'

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
    const watch = createSessionCheck({
      access: visitorAccessOf(core),
      log: { append, drain: async () => {} },
      subscriptions: streamSubscriptionsOf(core),
      bus: createBus(),
      logger: core.logger,
      now: cores.now,
    })
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
    createSessionCheck({
      access: { isUnchanged: () => true, endOf: async () => ({ grantExpiresAt: new Date(Date.now() + 60_000) }) },
      log: { append: () => Promise.reject(unavailable()), drain: async () => {} },
      subscriptions: {
        observe(given: typeof observer) {
          observer = given
        },
        hold: (sessionId: string) => void seen.held.push(sessionId),
        release() {},
      } as unknown as StreamSubscriptions,
      bus,
      logger: cores.core.logger,
      now: cores.now,
    })
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
