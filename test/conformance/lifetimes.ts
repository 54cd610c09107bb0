import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { until } from '../support/until.ts'
import { bearer } from './client.ts'
import { sendMany } from './replay.ts'
import { concurrentRule } from './rule.ts'
import { GRANT_SECONDS, SESSION_SECONDS, type Suite } from './suite.ts'

const millis = (time: string) => new Date(time).getTime()

/** Lifetimes of grants, sessions and streams. These tests wait, so they run concurrently. */
export function lifetimeRules(suite: () => Suite): void {
  concurrentRule('C2.5', async () => {
    const { client } = suite().short
    const visitor = await client.visitor()
    const started = Date.now()
    const first = bearer(visitor)
    await delay((GRANT_SECONDS - 1.5) * 1000)
    const { sessionId, renewalToken } = visitor.session
    const renewed = await client.call('POST', '/sessions/renew', { headers: first, body: { sessionId, renewalToken } })
    expect(renewed.status).toBe(200)
    expect(millis(renewed.body.expiresAt)).toBeLessThanOrEqual(started + SESSION_SECONDS * 1000)
    visitor.session = renewed.body
    const codeOf = async (headers: Record<string, string>) =>
      (await client.call('GET', '/messages', { headers })).body.code
    await until('the end of the first grant', async () => (await codeOf(first)) === 'SessionExpired')
    expect(await codeOf(bearer(visitor))).toBeUndefined()
    await until('the end of the session', async () => (await codeOf(bearer(visitor))) === 'SessionExpired')
    expect(Date.now()).toBeGreaterThanOrEqual(started + (SESSION_SECONDS - 1) * 1000)
    await client.fails('SessionExpired', 'POST', '/sessions/renew', {
      headers: bearer(visitor),
      body: { sessionId, renewalToken: renewed.body.renewalToken },
    })
  })

  concurrentRule(
    'C4.12',
    async () => {
      const { client } = suite().short
      const visitor = await client.visitor()
      await delay((GRANT_SECONDS - 4) * 1000)
      const { sessionId, renewalToken } = visitor.session
      const renewed = await client.call('POST', '/sessions/renew', {
        headers: bearer(visitor),
        body: { sessionId, renewalToken },
      })
      await delay(2200)
      const stream = await visitor.openStream()
      visitor.session = renewed.body
      // The first grant expires while the stream is open; the session continues.
      await delay(2000)
      expect((await visitor.send('on')).status).toBe(202)
      await until('the event', () => stream.events.length === 1)
      expect(stream.events[0]!.type).toBe('message.accepted')
      stream.close()
    },
    'after the grant that opened the stream has expired',
  )

  concurrentRule(
    'C4.13',
    async () => {
      const visitor = await suite().short.client.visitor()
      await delay((GRANT_SECONDS - 1.2) * 1000)
      const stream = await visitor.openStream()
      await stream.ended
      expect(stream.events.map(({ type }) => type)).toEqual(['session.expired'])
    },
    'an expired session',
  )

  concurrentRule('C4.15', async () => {
    const visitor = await suite().short.client.visitor()
    await sendMany(visitor, 1)
    const started = performance.now()
    const stream = await visitor.openStream({ after: 0 })
    await stream.ended
    expect(performance.now() - started).toBeLessThan(4_300)
    expect(stream.events.map(({ type }) => type)).toEqual(['message.accepted'])
    expect((await visitor.send('again')).status).toBe(202)
    const resumed = await visitor.openStream({ lastEventId: stream.events[0]!.id })
    await until('the event', () => resumed.events.length === 1)
    resumed.close()
  })

  concurrentRule('E.SessionExpired', async () => {
    const { client } = suite().short
    const visitor = await client.visitor()
    const headers = bearer(visitor)
    await expect
      .poll(async () => (await client.call('GET', '/messages', { headers })).status, {
        interval: 200,
        timeout: (GRANT_SECONDS + 2) * 1000,
      })
      .toBe(401)
    await client.fails('SessionExpired', 'GET', '/messages', { headers })
  })
}
