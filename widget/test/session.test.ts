import { describe, expect, it } from 'vitest'
import { type KeyValueStorage, storageFor } from '../../browser/storage.ts'
import { createClientHarness, fetchFromPage, until } from './client-harness.ts'
import type { SiteKey } from './scenarios.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()

const start = (siteKey: SiteKey, storage?: KeyValueStorage) => createClientHarness(server, siteKey, { clock, storage })

describe('sessions', () => {
  it('the client stores nothing and sends no request before it starts', () => {
    const storage = storageFor('memory')
    storage.setItem = () => expect.unreachable('written before the start')
    start('pk_friendly', storage)
    expect(server.requests).toEqual([])
  })

  it('a session is created once if the first response is lost', async () => {
    const harness = start('pk_lost_session')
    const starting = harness.client.start()
    await until(() => harness.count('error') === 1)
    clock.advance(2_000)
    await starting
    const keys = new Set(server.seen('POST /sessions').map(({ headers }) => headers['idempotency-key']))
    expect(keys.size).toBe(1)
    expect(server.sessionCount('pk_lost_session')).toBe(1)
    expect(harness.client.session()?.sessionId).toMatch(/^ses_/)
  })

  it('the client loads the newest history page at its start, and older pages on request', async () => {
    const storage = storageFor('memory')
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
  })

  it('a session ends with the error code of the service if the installation is unknown', async () => {
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

describe('the renewal of a grant', () => {
  it('a grant is renewed before it expires; the renewal sends the last event id and rotates the renewal token', async () => {
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
  })

  it('a refused renewal ends the session; only the visitor can then start a new session', async () => {
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
  })
})

describe('sessions that an operator ended', () => {
  it.each([
    ['connection.disabled', 'ConnectionDisabled'],
    ['visitor.banned', 'VisitorBanned'],
  ] as const)(
    'a session that was refused with %s before the tab ever had one is requested again by the next page',
    async (event, code) => {
      const storage = storageFor('memory')
      let isRefused = true
      const fetch: typeof globalThis.fetch = async (input, init) =>
        isRefused && /\/sessions$/.test(String(input))
          ? Response.json({ code, retryable: false, terminal: true, correlationId: 'c' }, { status: 403 })
          : fetchFromPage(input, init)
      const refused = createClientHarness(server, 'pk_friendly', {
        clock,
        storage,
        options: { platform: { fetch } },
      })
      await refused.client.start()
      expect([refused.client.ended(), refused.count(event)]).toEqual([{ event, code: event }, 1])
      refused.client.stop()
      isRefused = false
      const harness = createClientHarness(server, 'pk_friendly', {
        clock,
        storage,
        options: { platform: { fetch } },
      })
      await harness.started()
      expect([harness.client.ended(), server.seen('POST /sessions').length]).toEqual([undefined, 1])
    },
  )
})
