import { describe, expect, it } from 'vitest'
import type { LifecycleSignal } from '../../browser/platform.ts'
import { storageFor } from '../../browser/storage.ts'
import { assertionOf } from './assertion-of.ts'
import { until } from './client-harness.ts'
import { grantMs, isOnline, nap, night, record, sleepingClients } from './sleeping-clients.ts'

const { clock, server, start, renewals, sends, sleep, settled } = sleepingClients()

describe('a client after a sleep of 20 minutes', () => {
  it.each<LifecycleSignal>(['visible', 'online', 'pageshow'])(
    'after a sleep, the client renews the session once with the expired grant at the page signal %s',
    async (signal) => {
      const harness = start()
      await harness.started()
      const session = harness.client.session()
      sleep(nap)
      server.conversation('pk_friendly').agentSays('Still there?')
      harness.signal(signal)
      await until(() => renewals().length === 1)
      await until(
        () => harness.bodies().length === 1 && isOnline(harness),
        () => clock.advance(100),
      )
      expect(harness.client.session()).toEqual(session)
      expect(renewals()).toHaveLength(1)
      expect(server.seen('POST /sessions')).toHaveLength(1)
    },
  )

  it('after a sleep without a page signal, the client renews the session and then sends a message once', async () => {
    const harness = start()
    await harness.started()
    sleep(nap)
    const { clientOperationId } = harness.client.sendMessage('Hello again')
    await until(() => harness.states()[0] === 'queued')
    expect(sends().map(({ headers }) => headers['idempotency-key'])).toEqual([clientOperationId])
    expect(renewals()).toHaveLength(1)
  })

  it('after a sleep without a page signal, the client renews the session when the stream reconnects', async () => {
    const harness = start()
    await harness.started()
    sleep(nap)
    await until(
      () => renewals().length === 1 && isOnline(harness),
      () => clock.advance(100),
    )
    expect(harness.client.ended()).toBeUndefined()
  })

  it('a reload after a sleep renews the session, and keeps the conversation and the unsent message', async () => {
    const storage = storageFor('memory')
    const before = start('pk_friendly', { storage })
    await before.started()
    before.client.sendMessage('Hello')
    await until(() => before.states()[0] === 'queued')
    before.network.online = false
    before.client.sendMessage('Left behind')
    const session = before.client.session()
    expect(JSON.parse(storage.getItem(record)!).times.endsAtMs).toBe(clock.now() + grantMs + 7_200_000)
    before.client.stop()
    sleep(nap)
    const after = start('pk_friendly', { storage })
    await after.started()
    await until(() => after.states().join() === 'queued,queued')
    expect(after.client.session()).toEqual(session)
    expect(after.bodies()).toEqual(['Hello', 'Left behind'])
    expect([server.seen('POST /sessions').length, renewals().length]).toEqual([1, 1])
  })

  it('after a sleep, a tab and its duplicate both renew the session', async () => {
    const storage = storageFor('memory')
    const first = start('pk_friendly', { storage })
    await first.started()
    const copy = storageFor('memory')
    copy.setItem(record, storage.getItem(record)!)
    const second = start('pk_friendly', { storage: copy })
    await second.started()
    sleep(nap)
    for (const tab of [first, second]) {
      tab.signal('visible')
      await until(
        () => isOnline(tab),
        () => clock.advance(100),
      )
      tab.client.sendMessage('Hello')
    }
    await until(
      () => [first, second].every((tab) => tab.states().join() === 'queued,queued'),
      () => clock.advance(100),
    )
    expect([first.client.ended(), second.client.ended()]).toEqual([undefined, undefined])
  })

  it.each([false, true])(
    'a session continues if the response to a renewal was lost before the sleep (with a reload: %s)',
    async (reloads) => {
      const storage = storageFor('memory')
      const harness = start('pk_lost_renewal', { storage })
      await harness.started()
      const { sessionId } = harness.client.session()!
      clock.advance(616_000)
      await until(() => harness.count('error') === 1)
      const before = renewals().length
      sleep(2 * nap, 'pk_lost_renewal')
      if (reloads) harness.client.stop()
      const after = reloads ? start('pk_lost_renewal', { storage }) : harness
      if (reloads) await after.client.start()
      else after.signal('visible')
      // The repeat returns the grant that was issued before the sleep. This grant is renewed, too.
      await until(() => renewals().length === before + 2)
      await until(
        () => isOnline(after),
        () => clock.advance(100),
      )
      expect(after.client.session()?.sessionId).toBe(sessionId)
      const keys = renewals().map(({ headers }) => headers['idempotency-key'])
      expect([keys[before] === keys[before - 1], keys[before + 1] === keys[before]]).toEqual([true, false])
    },
  )

  it('after a sleep, an identification first renews the anonymous session', async () => {
    const harness = start('pk_friendly', { options: { identityProvider: async () => undefined } })
    await harness.started()
    const assertion = assertionOf('ada')
    const identified = start('pk_friendly', { options: { identityProvider: async () => assertion } })
    await identified.started()
    sleep(nap)
    await identified.client.identify()
    expect(identified.client.session()?.identity.state).toBe('verified')
    await harness.client.clearIdentity()
    expect(harness.client.ended()).toBeUndefined()
  })
})

describe('a grant that the service rejects as expired', () => {
  it('if the service rejects a grant as expired, the client renews it and repeats the request with the same operation id', async () => {
    // The browser's clock runs behind after a wake-up, so the client considers the grant valid.
    const harness = start('pk_friendly', { options: { platform: { clock: behind(nap) } } })
    await harness.started()
    clock.sleep(nap)
    const { clientOperationId } = harness.client.sendMessage('Hello')
    await until(() => harness.states()[0] === 'queued')
    expect(sends().map(({ headers }) => headers['idempotency-key'])).toEqual([clientOperationId, clientOperationId])
    expect(renewals()).toHaveLength(1)
    expect(harness.client.ended()).toBeUndefined()
  })

  /**
   * Returns a clock that stands still for the next `ms` milliseconds of the test's time, and runs late afterwards.
   */
  function behind(ms: number) {
    const beganMs = clock.now()
    const { setTimeout, clearTimeout } = clock
    return { setTimeout, clearTimeout, now: () => Math.max(beganMs, clock.now() - ms) }
  }
})

it.each(['the page wakes up', 'the visitor acts', 'the visitor sends a message', 'the timers run'])(
  'after a sleep of three hours, the client ends the session without a request when %s',
  async (what) => {
    const harness = start()
    await harness.started()
    harness.client.sendMessage('Hello')
    await until(() => harness.states()[0] === 'queued')
    await settled()
    clock.sleep(night)
    // The configuration is not part of the session.
    const requests = () => server.requests.filter(({ path }) => !path.includes('/config/')).length
    const before = requests()
    if (what === 'the page wakes up') harness.signal('visible')
    else if (what === 'the visitor acts') harness.client.markRead()
    else if (what === 'the visitor sends a message') {
      expect(() => harness.client.sendMessage('Hello?')).toThrow('session_ended')
    } else clock.advance(1)
    expect(harness.client.ended()).toEqual({ event: 'session.expired', code: 'session.expired' })
    expect(harness.client.canStartNew()).toBe(true)
    await settled()
    expect(requests()).toBe(before)
    await harness.client.startNew()
    await until(() => isOnline(harness))
    expect(server.seen('POST /sessions')).toHaveLength(2)
  },
)
