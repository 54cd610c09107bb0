import { describe, expect, it } from 'vitest'
import { type KeyValueStorage, storageFor } from '../../browser/storage.ts'
import type { SessionEnd } from '../src/vocabulary/types.ts'
import { assertionOf } from './assertion-of.ts'
import { createClientHarness, fetchFromPage, settled, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()
const key = 'service.widget.1.pk_friendly'

const load = (storage: KeyValueStorage, options = {}) =>
  createClientHarness(server, 'pk_friendly', { clock, storage, options })

const created = () => server.seen('POST /sessions').length

/** Starts a session and leaves the page with an unsent message and a draft. */
async function leaveSession(storage: KeyValueStorage, options = {}) {
  const harness = load(storage, options)
  await harness.started()
  harness.network.online = false
  harness.client.sendMessage('Unsent')
  harness.client.setDraft('Draft')
  harness.client.stop()
}

/** Expects that a page load reports the end and sends no request but for the configuration. */
async function expectEnded(storage: KeyValueStorage, event: SessionEnd) {
  const paths: string[] = []
  // A request of the page before may still arrive at the server.
  const fetch: typeof globalThis.fetch = (input, init) => {
    paths.push(new URL(String(input)).pathname)
    return fetchFromPage(input, init)
  }
  const harness = load(storage, { platform: { fetch } })
  await harness.client.start()
  expect(harness.client.ended()).toEqual({ event, code: event })
  expect([harness.count(event), harness.client.connection()]).toEqual([1, 'ended'])
  expect([harness.client.session(), harness.client.canStartNew()]).toEqual([undefined, true])
  expect(paths.filter((path) => !path.includes('/config/'))).toEqual([])
  return harness
}

const ends = [
  ['session.revoked', 'SessionRevoked', 403],
  ['session.closed', 'SessionClosed', 401],
  ['visitor.banned', 'VisitorBanned', 403],
  ['connection.disabled', 'ConnectionDisabled', 403],
] as const

describe('C7.1 a page load after the end of the session', () => {
  it.each(ends)('reports %s at every load, until the host starts a new session', async (event, code, status) => {
    const storage = storageFor('memory')
    const before = load(storage)
    await before.started()
    server.endSessions('pk_friendly', event, { status, code })
    await until(() => before.client.connection() === 'ended')
    expect(storage.getItem(key)).not.toContain('accessGrant')
    before.client.stop()
    ;(await expectEnded(storage, event)).client.stop()
    const third = await expectEnded(storage, event)
    expect(created()).toBe(1)

    await third.client.startNew()
    await until(() => third.client.connection() === 'online')
    const [first, second] = server.seen('POST /sessions').map(({ body }) => body?.clientInstanceId)
    expect([created(), second]).toEqual([2, first])
    expect(third.client.ended()).toBeUndefined()
    third.client.stop()
    const fourth = load(storage)
    await fourth.started()
    expect([created(), fourth.count(event)]).toEqual([2, 0])
  })

  it('reports a reset of the log with its fields at every load', async () => {
    const storage = storageFor('memory')
    const loadReset = () => createClientHarness(server, 'pk_reset_reauthenticate', { storage })
    for (const _load of ['first', 'second', 'third']) {
      const { client, events } = loadReset()
      await client.start()
      await until(() => client.connection() === 'ended')
      const payload = { code: 'replay.reset.required', reason: 'window', reauthenticationRequired: true }
      expect(events.filter(({ name }) => name === 'replay.reset.required')).toMatchObject([{ payload }])
      client.stop()
    }
  })

  it('reports session.expired if the stored session has expired, and shows the unsent message as failed', async () => {
    const storage = storageFor('memory')
    await leaveSession(storage)
    clock.sleep(8_100_000)
    for (const _load of ['first', 'second']) {
      const harness = await expectEnded(storage, 'session.expired')
      expect([harness.bodies(), harness.states()]).toEqual([['Unsent'], ['failed']])
      expect(() => harness.client.sendMessage('Hello')).toThrow('session_ended')
      harness.client.stop()
    }
    const harness = await expectEnded(storage, 'session.expired')
    await harness.client.startNew()
    await until(() => harness.client.connection() === 'online')
    expect([harness.client.draft(), harness.bodies(), harness.states()]).toEqual(['Draft', ['Unsent'], ['failed']])
    expect(harness.client.retryMessage(harness.client.messages()[0]!.key)).toBe(false)
    expect(server.seen('POST /messages')).toEqual([])
  })

  it('shows nothing of a verified visitor whose session has expired, and asks the provider only for a new session', async () => {
    const storage = storageFor('memory')
    let isAsked = false
    const options = {
      identityProvider: async () => {
        isAsked = true
        return assertionOf('ada')
      },
    }
    await leaveSession(storage, options)
    clock.sleep(8_100_000)
    isAsked = false
    const harness = load(storage, options)
    await harness.client.start()
    expect([harness.client.ended()?.event, harness.bodies(), isAsked, created()]).toEqual([
      'session.expired',
      [],
      false,
      1,
    ])
    expect(JSON.stringify([storage.getItem(key), storage.getItem(`${key}.outbox`)])).not.toMatch(/Unsent|Draft|ada/)
    await harness.client.startNew()
    expect(harness.client.session()?.identity.state).toBe('verified')
  })

  it('reports the end if the service answers the first request that the session was revoked meanwhile', async () => {
    const storage = storageFor('memory')
    await leaveSession(storage)
    server.endSessions('pk_friendly', 'session.revoked', { status: 403, code: 'SessionRevoked' })
    const harness = load(storage)
    await harness.client.start()
    await until(() => harness.client.connection() === 'ended')
    expect([harness.client.ended()?.event, harness.client.canStartNew(), created()]).toEqual([
      'session.revoked',
      true,
      1,
    ])
    harness.client.stop()
    await expectEnded(storage, 'session.revoked')
  })

  it('reports the end if the provider’s assertion cannot be used in a session that was revoked meanwhile', async () => {
    const storage = storageFor('memory')
    const options = { identityProvider: async () => assertionOf('ada') }
    await leaveSession(storage, options)
    server.endSessions('pk_friendly', 'session.revoked', { status: 403, code: 'SessionRevoked' })
    for (const person of ['ada', 'bob', undefined]) {
      const copy = storageFor('memory')
      copy.setItem(key, storage.getItem(key)!)
      const harness = load(copy, { identityProvider: async () => person && assertionOf(person) })
      await harness.client.start()
      expect([person, harness.client.ended()?.event, harness.count('session.revoked'), created()]).toEqual([
        person,
        'session.revoked',
        1,
        1,
      ])
      harness.client.stop()
      ;(await expectEnded(copy, 'session.revoked')).client.stop()
    }
  })

  it('a refused attempt to start a new session ends the chat, and offers no further attempt on this page', async () => {
    const storage = storageFor('memory')
    storage.setItem(key, JSON.stringify({ clientInstanceId: 'tab', ended: { event: 'visitor.banned' } }))
    const fetch: typeof globalThis.fetch = async (input) =>
      String(input).endsWith('/sessions')
        ? Response.json({ code: 'VisitorBanned', retryable: false, terminal: true }, { status: 403 })
        : Response.json({ capabilities: {} })
    const harness = load(storage, { platform: { fetch } })
    await harness.client.start()
    expect([harness.client.ended()?.event, harness.client.canStartNew()]).toEqual(['visitor.banned', true])
    await harness.client.startNew()
    expect([harness.client.ended()?.event, harness.client.canStartNew()]).toEqual(['visitor.banned', false])
    expect(harness.count('visitor.banned')).toBe(2)
    await expectEnded(storage, 'visitor.banned')
  })

  const whole = async () => {
    const storage = storageFor('memory')
    await leaveSession(storage)
    return { storage, record: JSON.parse(storage.getItem(key)!) }
  }
  const damages: Record<string, (record: Record<string, unknown>) => unknown> = {
    'is cut off': (record) => JSON.stringify(record).slice(0, 200),
    'is no JSON': () => '<html>',
    'is empty': () => '',
    'is null': () => 'null',
    'is an array': () => '[]',
    'is a number': () => '7',
    'has no clientInstanceId': ({ clientInstanceId: _, ...record }) => record,
    'has a clientInstanceId that no header may contain': (record) => ({ ...record, clientInstanceId: 'ä\n' }),
    'has no times': ({ times: _, ...record }) => record,
    'has times without values': (record) => ({ ...record, times: {} }),
    'has an empty session': (record) => ({ ...record, session: {} }),
    'has a session that is a text': (record) => ({ ...record, session: 'session' }),
    'has no grant': (record) => ({ ...record, session: { ...(record.session as object), accessGrant: undefined } }),
    'has a grant that no header may contain': (record) => ({
      ...record,
      session: { ...(record.session as object), accessGrant: 'a\nb' },
    }),
    'has no identity': (record) => ({ ...record, session: { ...(record.session as object), identity: null } }),
    'has a position without a sequence': (record) => ({ ...record, position: {} }),
    'has a renewal without a key': (record) => ({ ...record, renewal: { askedAtMs: 1 } }),
  }
  it.each(Object.keys(damages))('reports session.expired if the stored record %s', async (name) => {
    const { storage, record } = await whole()
    const damaged = damages[name]!(record)
    storage.setItem(key, typeof damaged === 'string' ? damaged : JSON.stringify(damaged))
    ;(await expectEnded(storage, 'session.expired')).client.stop()
    const harness = await expectEnded(storage, 'session.expired')
    await harness.client.startNew()
    await until(() => harness.client.connection() === 'online')
    expect(created()).toBe(2)
  })

  it.each(['{', '[]', '{"entries":7}', '{"entries":[null,{},{"input":{"clientOperationId":"a\\n"}}]}'])(
    'resumes the session if only the stored outbox is damaged: %s',
    async (outbox) => {
      const { storage } = await whole()
      storage.setItem(`${key}.outbox`, outbox)
      const harness = load(storage)
      await harness.started()
      expect([created(), harness.bodies(), harness.client.draft()]).toEqual([1, [], 'Draft'])
    },
  )
})

describe('C7.5 a refused origin', () => {
  it('ends the chat, keeps the session, and the next load sends what was not sent', async () => {
    const storage = storageFor('memory')
    const harness = load(storage)
    await harness.started()
    const session = harness.client.session()
    server.refuseOrigin(true)
    harness.client.sendMessage('Hello')
    await until(() => harness.client.connection() === 'ended')
    expect(harness.client.ended()).toEqual({ event: undefined, code: 'OriginNotAllowed' })
    expect(harness.events).toContainEqual({ name: 'error', payload: { code: 'OriginNotAllowed', recoverable: false } })
    expect(harness.client.canStartNew()).toBe(false)
    const count = server.requests.length
    for (let second = 0; second < 300; second += 1) clock.advance(1_000)
    await settled()
    expect(server.requests).toHaveLength(count)
    harness.client.stop()

    const refused = load(storage)
    await refused.client.start()
    await until(() => refused.client.connection() === 'ended')
    refused.client.stop()
    server.refuseOrigin(false)
    const after = load(storage)
    await after.started()
    await until(() => after.states().join() === 'queued')
    expect([after.client.session(), created(), after.bodies()]).toEqual([session, 1, ['Hello']])
  })

  it('a renewal that is refused because of the origin keeps the session for the next load', async () => {
    const storage = storageFor('memory')
    await leaveSession(storage)
    clock.sleep(1_000_000)
    server.refuseOrigin(true)
    const harness = load(storage)
    await harness.client.start()
    expect(harness.client.ended()).toEqual({ event: undefined, code: 'OriginNotAllowed' })
    harness.client.stop()
    server.refuseOrigin(false)
    const after = load(storage)
    await after.started()
    expect([created(), after.bodies()]).toEqual([1, ['Unsent']])
  })
})
