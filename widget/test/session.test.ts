import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createMemoryStorage, type KeyValueStorage } from '../src/storage.ts'
import { createClientHarness, until } from './client-harness.ts'
import { createManualClock } from './manual-clock.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'
import type { SiteKey } from './scenarios.ts'

let server: ScenarioServer
let clock: ReturnType<typeof createManualClock>
beforeEach(async () => {
  await server?.close()
  clock = createManualClock()
  server = await startScenarioServer({ now: clock.now })
})
afterAll(() => server.close())

const start = (siteKey: SiteKey, storage?: KeyValueStorage) => createClientHarness(server, siteKey, { clock, storage })

describe('a session', () => {
  it('writes nothing and makes no request before the start', () => {
    const storage = createMemoryStorage()
    storage.setItem = () => expect.unreachable('written before the start')
    start('pk_friendly', storage)
    expect(server.requests).toEqual([])
  })

  it('is created once if the first answer is lost', async () => {
    const harness = start('pk_lost_session')
    const starting = harness.client.start()
    await until(() => harness.count('error') === 1)
    clock.advance(2_000)
    await starting
    const keys = new Set(server.seen('POST /sessions').map(({ headers }) => headers['idempotency-key']))
    expect(keys.size).toBe(1)
    expect(server.sessionCount('pk_lost_session')).toBe(1)
    expect(harness.client.session()?.sessionId).toMatch(/^ses_/)
    harness.client.stop()
  })

  it('resumes after a reload with the same conversation, without duplicate or lost messages', async () => {
    const storage = createMemoryStorage()
    const before = start('pk_friendly', storage)
    await before.started()
    before.client.sendMessage('Hello')
    await until(() => before.states()[0] === 'queued')
    server.conversation('pk_friendly').agentSays('Hi')
    await until(() => before.bodies().length === 2)
    const session = before.client.session()
    before.client.stop()
    server.conversation('pk_friendly').agentSays('Still there?')

    const after = start('pk_friendly', storage)
    await after.started()
    await until(() => after.bodies().length === 3)
    expect(after.client.session()).toEqual(session)
    expect(after.bodies()).toEqual(['Hello', 'Hi', 'Still there?'])
    expect(server.seen('POST /sessions')).toHaveLength(1)
    after.client.stop()
  })

  it('is shared by a duplicated tab, and both tabs renew it', async () => {
    const storage = createMemoryStorage()
    const first = start('pk_friendly', storage)
    await first.started()
    const copy = createMemoryStorage()
    const key = 'service.widget.1.pk_friendly'
    copy.setItem(key, storage.getItem(key)!)
    const second = start('pk_friendly', copy)
    await second.started()
    first.client.sendMessage('From one tab')
    await until(() => second.bodies().length === 1)
    for (const renewals of [2, 4]) {
      clock.advance(616_000)
      await until(() => server.seen('POST /sessions/renew').length === renewals)
      await until(() => (clock.nextIn(100_000) ?? 0) > 0)
    }
    const areOnline = () => [first, second].every(({ client }) => client.connection() === 'online')
    await until(areOnline, () => clock.advance(100))
    second.client.sendMessage('From the other tab')
    await until(() => first.bodies().length === 2 && second.states().every((state) => state === 'queued'))

    expect(first.bodies()).toEqual(second.bodies())
    expect(first.count('session.expired') + second.count('session.expired')).toBe(0)
    first.client.stop()
    second.client.stop()
  })

  it('loads the newest page of the history first, and older pages on request', async () => {
    const storage = createMemoryStorage()
    const first = start('pk_friendly', storage)
    await first.started()
    for (let count = 1; count <= 120; count += 1) server.conversation('pk_friendly').agentSays(`message ${count}`)
    await until(() => first.bodies().length === 120)
    first.client.stop()

    const second = start('pk_friendly', storage)
    await second.started()
    await until(() => second.bodies().length === 50)
    expect(second.bodies()[0]).toBe('message 71')
    expect(second.client.hasOlder()).toBe(true)
    await Promise.all([second.client.loadOlder(), second.client.loadOlder()])
    await second.client.loadOlder()
    expect(second.bodies()).toHaveLength(120)
    expect(second.bodies()[0]).toBe('message 1')
    expect(second.client.hasOlder()).toBe(false)
    second.client.stop()
  })

  it('for an unknown installation ends with its code and sends nothing', async () => {
    const harness = start('pk_unknown')
    await harness.client.start()
    expect(harness.client.connection()).toBe('ended')
    expect(harness.events).toContainEqual({
      name: 'error',
      payload: { code: 'InstallationNotFound', recoverable: false },
    })
    expect(server.seen('GET /events')).toHaveLength(0)
  })
})

describe('the renewal', () => {
  it('happens before the grant expires, rotates the token, sends the last event id, and keeps the stream', async () => {
    const harness = start('pk_friendly')
    await harness.started()
    server.conversation('pk_friendly').agentSays('Hi')
    await until(() => harness.bodies().length === 1)
    clock.advance(599_000)
    expect(server.seen('POST /sessions/renew')).toHaveLength(0)
    clock.advance(17_000)
    await until(() => server.seen('POST /sessions/renew').length === 1)
    expect(server.seen('POST /sessions/renew')[0]?.body).toMatchObject({ lastSeenEventId: 'e1-1' })
    const firstGrant = server.seen('POST /sessions/renew')[0]?.headers.authorization
    await until(() => (clock.nextIn(100_000) ?? 0) > 0)
    clock.advance(616_000)
    await until(() => server.seen('POST /sessions/renew').length === 2)
    const [first, second] = server.seen('POST /sessions/renew')
    expect(second?.headers.authorization).not.toBe(firstGrant)
    expect(second?.body?.renewalToken).not.toBe(first?.body?.renewalToken)
    harness.client.stop()
  })

  it.each<SiteKey>(['pk_renew_unstable', 'pk_lost_renewal'])(
    'is retried with the same key after a transient failure (%s)',
    async (siteKey) => {
      const harness = start(siteKey)
      await harness.started()
      clock.advance(616_000)
      const expected = siteKey === 'pk_lost_renewal' ? 2 : 3
      for (let renewals = 1; renewals < expected; renewals += 1) {
        await until(() => harness.count('error') === renewals)
        clock.advance(5_000)
      }
      await until(() => server.seen('POST /sessions/renew').length === expected)
      await until(() => (clock.nextIn(100_000) ?? 0) > 0)
      const keys = new Set(server.seen('POST /sessions/renew').map(({ headers }) => headers['idempotency-key']))
      expect(keys.size).toBe(1)
      expect(harness.client.ended()).toBeUndefined()
      harness.client.sendMessage('Still here')
      await until(() => harness.states()[0] === 'queued')
      harness.client.stop()
    },
  )

  it('that never succeeds ends the session when its grant expires', async () => {
    const harness = start('pk_renew_never')
    await harness.started()
    clock.advance(616_000)
    await until(() => harness.count('error') === 1)
    harness.client.sendMessage('Still good')
    await until(() => harness.states()[0] === 'queued')
    for (let failures = 1; !harness.client.ended(); failures += 1) {
      await until(() => harness.count('error') === failures || harness.client.ended() !== undefined)
      clock.advance(30_000)
    }
    expect(harness.client.ended()?.event).toBe('session.expired')
    expect(server.seen('POST /sessions/renew').length).toBeGreaterThan(3)
    expect(server.seen('POST /sessions/renew').length).toBeLessThan(40)
  })

  it('that is refused ends the session; only the visitor can start a new one', async () => {
    const harness = start('pk_expired_at_renew')
    await harness.started()
    harness.client.sendMessage('Hello')
    await until(() => harness.states()[0] === 'queued')
    clock.advance(616_000)
    await until(() => harness.client.ended() !== undefined)
    expect(harness.names()).toContain('session.expired')
    expect(server.seen('POST /sessions')).toHaveLength(1)

    expect(harness.client.canStartNew()).toBe(true)
    await harness.client.startNew()
    await until(() => harness.client.connection() === 'online')
    expect(server.seen('POST /sessions')).toHaveLength(2)
    expect(harness.bodies()).toEqual([])
    harness.client.stop()
  })

  it('happens when a laptop wakes after it was due', async () => {
    const harness = start('pk_friendly')
    await harness.started()
    clock.sleep(700_000)
    harness.signal('visible')
    clock.advance(1)
    await until(() => server.seen('POST /sessions/renew').length === 1)
    expect(harness.client.ended()).toBeUndefined()
    harness.client.stop()
  })
})

describe('a disabled connection', () => {
  it.each(['by the event', 'in a record of an earlier version'])(
    'ends the session, and a reload begins anew, %s',
    async (way) => {
      const storage = createMemoryStorage()
      const before = start('pk_friendly', storage)
      await before.started()
      server.endSessions('pk_friendly', 'connection.disabled', { status: 403, code: 'ConnectionDisabled' })
      await until(() => before.client.connection() === 'ended')
      expect(before.client.canStartNew()).toBe(false)
      const ended = { event: 'connection.disabled', code: 'ConnectionDisabled' }
      if (way !== 'by the event')
        storage.setItem('service.widget.1.pk_friendly', JSON.stringify({ clientInstanceId: 'tab', ended }))

      const after = start('pk_friendly', storage)
      await after.started()
      expect(after.client.ended()).toBeUndefined()
      expect(server.seen('POST /sessions')).toHaveLength(2)
      after.client.stop()
    },
  )
})

describe('a ban or a revocation', () => {
  it.each([
    ['visitor.banned', 'VisitorBanned'],
    ['session.revoked', 'SessionRevoked'],
  ] as const)('%s is not turned into a fresh anonymous session by a reload', async (event, code) => {
    const storage = createMemoryStorage()
    const before = start('pk_friendly', storage)
    await before.started()
    server.endSessions('pk_friendly', event, { status: 403, code })
    await until(() => before.client.connection() === 'ended')
    expect(storage.getItem('service.widget.1.pk_friendly')).not.toContain('accessGrant')

    const after = start('pk_friendly', storage)
    await after.client.start()
    expect(after.client.ended()?.event).toBe(event)
    expect(after.client.canStartNew()).toBe(false)
    expect(server.seen('POST /sessions')).toHaveLength(1)
  })
})
