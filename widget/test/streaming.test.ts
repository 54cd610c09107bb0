import { describe, expect, it } from 'vitest'
import { createManualClock } from '../../test/support/manual-clock.ts'
import { createClientHarness, fetchFromPage, settled, until } from './client-harness.ts'
import type { SiteKey } from './scenarios.ts'
import { serverPerTest } from './server-per-test.ts'

const { server } = serverPerTest()

const streams = () => server.seen('GET /events').length

describe('the event stream', () => {
  it('the stream delivers messages of agents, and its request has credentials and position in headers', async () => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    server.conversation('pk_friendly').agentSays('Hello')
    await until(() => harness.bodies().length === 1)
    server.conversation('pk_friendly').cutStreams()
    await until(() => harness.client.connection() === 'reconnecting')
    harness.clock.advance(1_000)
    await until(() => harness.client.connection() === 'online')

    const [first, second] = server.seen('GET /events')
    expect(first?.headers.authorization).toMatch(/^Bearer /)
    // The epoch in the id tells the service about a restored backup, even before the first event.
    expect(first?.headers['last-event-id']).toBe('e1-0')
    expect(second?.headers['last-event-id']).toBe('e1-1')
    expect(second?.query).toEqual({ afterSequence: '1' })
  })

  it.each<[string, SiteKey]>([
    ['each stream ends after one event', 'pk_end_after_one'],
    ['each event is written twice', 'pk_duplicate_event'],
    ['an event is cut off in the middle', 'pk_cut_event'],
    ['an event cannot be read', 'pk_unreadable_event'],
  ])('the stream shows each message once and in order even if %s', async (_, siteKey) => {
    const harness = createClientHarness(server, siteKey)
    await harness.started()
    const conversation = server.conversation(siteKey)
    const expected = ['one', 'two', 'three', 'four']
    for (const body of expected) conversation.agentSays(body)
    await until(
      () => harness.bodies().length === expected.length,
      () => {
        conversation.heartbeat()
        if (harness.client.connection() === 'reconnecting') harness.clock.advance(1_000)
      },
    )

    expect(harness.bodies()).toEqual(expected)
    expect(harness.count('message.received')).toBe(expected.length)
  })

  it('the stream reconnects at once when the page wakes after a long sleep', async () => {
    const harness = createClientHarness(server, 'pk_half_dead')
    await harness.started()
    harness.clock.sleep(60_000)
    harness.signal('visible')
    await until(() => harness.client.connection() === 'reconnecting')
    harness.signal('pageshow')
    await until(() => streams() === 2)
  })

  it('the stream keeps a connection that only receives heartbeats', async () => {
    const harness = createClientHarness(server, 'pk_other_sessions')
    await harness.started()
    const asked = () => server.seen('GET /messages').length
    for (let beat = 0; beat < 8; beat += 1) {
      harness.clock.advance(15_000)
      const before = asked()
      // The server counts this event in its heartbeat but does not send it. So the client requests
      // the history, which shows that the heartbeat has arrived.
      server.conversation('pk_other_sessions').emit('session.identified')
      server.conversation('pk_other_sessions').heartbeat()
      await until(() => asked() > before)
      harness.signal('visible')
    }
    expect(streams()).toBe(1)
  })

  it('a missing event causes one request for the history, and not one at each heartbeat', async () => {
    const harness = createClientHarness(server, 'pk_missed_event')
    await harness.started()
    const conversation = server.conversation('pk_missed_event')
    await until(() => server.seen('GET /messages').length === 1)
    conversation.emit('session.identified')
    conversation.heartbeat()
    await until(() => server.seen('GET /messages').length === 2)
    for (let beat = 0; beat < 5; beat += 1) conversation.heartbeat()
    conversation.agentSays('After the heartbeats')
    await until(() => harness.bodies().length === 1)
    expect(server.seen('GET /messages')).toHaveLength(2)
    expect(streams()).toBe(1)
  })

  it('the stream backs off after failures, and waits for the delay that the service asks for', async () => {
    const harness = createClientHarness(server, 'pk_stream_unavailable')
    void harness.client.start()
    await until(() => harness.client.connection() === 'reconnecting')
    harness.clock.advance(3_900)
    await settled()
    expect(streams()).toBe(1)
    harness.clock.advance(200)
    await until(() => streams() === 2)
    await until(() => (harness.clock.nextIn(1_900) ?? 0) === 2_000)
    harness.clock.advance(1_900)
    await settled()
    expect(streams()).toBe(2)
    harness.clock.advance(200)
    await until(() => harness.client.connection() === 'online')
  })
})

it('a connection that never opens is not stable: the pauses between attempts grow, however long each attempt takes', async () => {
  const attempts: number[] = []
  const clock = createManualClock()
  const fetch: typeof globalThis.fetch = (input, init) => {
    if (!String(input).includes('/events')) return fetchFromPage(input, init)
    attempts.push(clock.now())
    return new Promise((_, reject) => clock.setTimeout(() => reject(new TypeError('no answer')), 12_000))
  }
  const harness = createClientHarness(server, 'pk_friendly', { clock, options: { platform: { fetch } } })
  await harness.client.start()
  await until(
    () => attempts.length === 6,
    () => clock.advance(100),
  )
  expect(attempts[5]! - attempts[4]! - 12_000).toBeGreaterThan(4 * (attempts[1]! - attempts[0]! - 12_000))
})
it('a connection that brought an event works: the next pause is a first one, however often connections break', async () => {
  let cut = () => {}
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await fetchFromPage(input, init)
    if (!String(input).includes('/events')) return response
    const controller = new AbortController()
    cut = () => controller.abort()
    return new Response(response.body!.pipeThrough(new TransformStream(), { signal: controller.signal }), response)
  }
  const harness = createClientHarness(server, 'pk_friendly', { options: { platform: { fetch } } })
  await harness.started()
  for (let count = 1; count <= 6; count += 1) {
    server.conversation('pk_friendly').agentSays(`Message ${count}`)
    await until(() => harness.bodies().length === count)
    cut()
    await until(() => harness.client.connection() === 'reconnecting')
    harness.clock.advance(2_000)
    await until(() => harness.client.connection() === 'online')
  }
})

describe('stream resets', () => {
  it('after a replay.reset.required event, the stream resumes from the newest position of the history', async () => {
    const harness = createClientHarness(server, 'pk_reset_once')
    void harness.client.start()
    await until(() => server.sessionCount('pk_reset_once') === 1)
    server.conversation('pk_reset_once').agentSays('Before the reset')
    await until(() => harness.client.connection() === 'reconnecting')
    harness.clock.advance(1_000)
    await until(() => harness.client.connection() === 'online' && streams() === 2)
    server.conversation('pk_reset_once').agentSays('After the reset')
    await until(() => harness.bodies().length === 2)

    expect(harness.bodies()).toEqual(['Before the reset', 'After the reset'])
    expect(harness.events.filter(({ name }) => name === 'replay.reset.required')).toEqual([
      { name: 'replay.reset.required', payload: { reason: 'window', reauthenticationRequired: false } },
    ])
    expect(harness.client.ended()).toBeUndefined()
  })
})

describe('the client in a browser without a network', () => {
  it('without a network, the client does not report the chat as online; it resumes when the network returns', async () => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    harness.signal('offline')
    await until(() => harness.client.connection() === 'reconnecting')
    server.conversation('pk_friendly').agentSays('meanwhile')
    harness.signal('online')
    await until(() => harness.client.connection() === 'online' && harness.bodies().length === 1)
    expect(harness.bodies()).toEqual(['meanwhile'])
    expect(harness.count('message.received')).toBe(1)
  })
})

describe('terminal errors', () => {
  it.each([
    ['session.expired', 'SessionExpired', 401],
    ['session.revoked', 'SessionRevoked', 403],
    ['session.closed', 'SessionClosed', 401],
    ['visitor.banned', 'VisitorBanned', 403],
    ['connection.disabled', 'ConnectionDisabled', 403],
  ] as const)('after the terminal error %s, all retries stop and one event is emitted', async (event, code, status) => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    server.endSessions('pk_friendly', event, { status, code })
    await until(() => harness.client.connection() === 'ended')
    const requests = server.requests.length
    harness.clock.advance(3_600_000)
    for (const signal of ['online', 'visible', 'pageshow'] as const) harness.signal(signal)
    await settled()

    expect(server.requests.length).toBe(requests)
    expect(harness.count(event)).toBe(1)
    expect(harness.client.ended()?.event).toBe(event)
    expect(() => harness.client.sendMessage('Hello')).toThrow(expect.objectContaining({ code: 'session_ended' }))
  })
})
