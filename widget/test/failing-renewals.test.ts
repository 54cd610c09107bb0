import { describe, expect, it } from 'vitest'
import { type KeyValueStorage, storageFor } from '../../browser/storage.ts'
import { until } from './client-harness.ts'
import { isOnline, nap, night, sleepingClients } from './sleeping-clients.ts'

const { clock, server, start, renewals, sends, sleep, settled } = sleepingClients()

describe('a client that cannot reach the service after a sleep', () => {
  async function asleep(options: { storage?: KeyValueStorage } = {}) {
    const harness = start('pk_renew_never', options)
    await harness.started()
    sleep(nap, 'pk_renew_never')
    return harness
  }

  it('the client tries to renew once per page signal and once per action of the visitor, and not by itself', async () => {
    const harness = await asleep()
    let expected = 0
    const acts = [
      () => harness.signal('visible'),
      () => harness.signal('online'),
      () => void harness.client.sendMessage('Hello'),
      () => harness.client.markRead(),
      () => void harness.client.startTyping(),
    ]
    for (const act of acts) {
      expected += 1
      act()
      await until(() => renewals().length === expected)
      await settled()
      for (let minute = 0; minute < 5; minute += 1) {
        clock.advance(60_000)
        await settled()
      }
      expect(renewals()).toHaveLength(expected)
    }
    expect(sends()).toEqual([])
    expect(server.seen('GET /events')).toHaveLength(1)
    expect([harness.client.ended(), harness.client.connection(), harness.states()]).toEqual([
      undefined,
      'reconnecting',
      ['pending'],
    ])
  })

  it('the client reports the end of a session that can no longer be renewed, and the visitor can start a new one', async () => {
    const harness = await asleep()
    harness.signal('visible')
    await until(() => renewals().length === 1)
    harness.client.sendMessage('Anyone?')
    await until(() => renewals().length === 2)
    await settled()
    clock.advance(night)
    expect(harness.client.ended()).toEqual({ event: 'session.expired', code: 'session.expired' })
    expect(harness.client.messages().map(({ error }) => error?.code)).toEqual(['session.expired'])
    expect(harness.client.canStartNew()).toBe(true)
    await settled()
    expect([renewals().length, sends().length]).toEqual([2, 0])
  })

  it('the client tries to renew again if a page signal arrives during a failing attempt', async () => {
    const harness = await asleep()
    harness.signal('visible')
    harness.signal('online')
    await until(() => renewals().length === 2)
    await settled()
    expect(renewals()).toHaveLength(2)
  })

  it('a reload keeps the stored session, and the client renews it at the next page signal', async () => {
    const storage = storageFor('memory')
    const before = start('pk_renew_refused_once', { storage })
    await before.started()
    const session = before.client.session()
    before.client.stop()
    clock.sleep(nap)
    const after = start('pk_renew_refused_once', { storage })
    await after.client.start()
    expect([after.client.session(), after.client.connection(), renewals().length]).toEqual([session, 'connecting', 1])
    after.signal('visible')
    await until(
      () => isOnline(after),
      () => clock.advance(100),
    )
    expect(renewals()).toHaveLength(2)
  })
})

describe('if the grant expires while the renewal is retried', () => {
  it('if the grant expires while the renewal is retried, the client stops retrying and keeps the session', async () => {
    const harness = start('pk_renew_never')
    await harness.started()
    clock.advance(616_000)
    for (let failures = 1; clock.now() < Date.parse('2026-11-20T12:15:00.000Z'); failures += 1) {
      await until(() => harness.count('error') >= failures)
      clock.advance(30_000)
    }
    await settled()
    const attempts = renewals().length
    expect(attempts).toBeGreaterThan(3)
    expect(new Set(renewals().map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    clock.advance(600_000)
    await settled()
    expect([renewals().length, harness.client.ended()]).toEqual([attempts, undefined])
  })
})
