import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer, message } from './client.ts'
import { sendMany } from './replay.ts'
import { concurrentRule, inTime } from './rule.ts'
import { GRANT_SECONDS, RENEWABLE_SECONDS, SESSION_SECONDS, STREAM_SECONDS, type Suite } from './suite.ts'

/** Interval of polls in milliseconds. Shorter intervals would exceed the rate limit. */
const POLL_MS = 500

/** Minimum age in milliseconds at which the server ends a stream because of its age. */
const STREAM_AGE_MIN_MS = 0.8 * STREAM_SECONDS * 1000
const millis = (time: string) => new Date(time).getTime()

/** Opens a stream. Returns undefined if it was refused after the deadline, a time in milliseconds. */
async function openBefore(deadline: number, visitor: Visitor) {
  const stream = await visitor.openStream()
  if (stream.status !== 200 && Date.now() >= deadline) return undefined
  expect(stream.status).toBe(200)
  return stream
}

/** Tests of lifetimes of grants, sessions and streams. They wait for time to pass, so they run concurrently. */
export function lifetimeRules(suite: () => Suite): void {
  const codeOf = async (headers: Record<string, string>) =>
    (await suite().short.client.call('GET', '/messages', { headers })).body.code
  const untilCode = (visitor: Visitor, code: string) =>
    until(code, async () => (await codeOf(bearer(visitor))) === code, POLL_MS)

  function renewal({ session }: Visitor, headers: Record<string, string>) {
    const { sessionId, renewalToken } = session
    return { headers, body: { sessionId, renewalToken } }
  }

  concurrentRule('C2.5', () =>
    inTime(async () => {
      const { client } = suite().short
      const visitor = await client.visitor()
      const started = millis(visitor.session.expiresAt) - GRANT_SECONDS * 1000
      const first = bearer(visitor)
      await delay((GRANT_SECONDS / 2) * 1000)
      const renewed = await client.call('POST', '/sessions/renew', renewal(visitor, first))
      expect(renewed.status).toBe(200)
      expect(millis(renewed.body.expiresAt)).toBeLessThanOrEqual(started + SESSION_SECONDS * 1000)
      expect(renewed.body.renewableUntil).toBe(renewed.body.expiresAt)
      visitor.session = renewed.body
      await until('the end of the first grant', async () => (await codeOf(first)) === 'GrantExpired', POLL_MS)
      expect(await codeOf(bearer(visitor))).toBeUndefined()
      // A stream that opens earlier reaches its maximum age before the session ends.
      await delay(started + (SESSION_SECONDS - STREAM_SECONDS / 2) * 1000 - Date.now())
      const stream = await openBefore(started + SESSION_SECONDS * 1000, visitor)
      if (!stream) return false
      await untilCode(visitor, 'SessionExpired')
      expect(Date.now()).toBeGreaterThanOrEqual(started + (SESSION_SECONDS - 1) * 1000)
      await stream.ended
      expect(stream.events.map(({ type }) => type)).toEqual(['session.expired'])
      await client.fails('SessionExpired', 'POST', '/sessions/renew', renewal(visitor, bearer(visitor)))
      return true
    }),
  )

  concurrentRule('C2.11', async () => {
    const { client } = suite().short
    const visitor = await client.visitor()
    const headers = bearer(visitor)
    await untilCode(visitor, 'GrantExpired')
    const scoped: [method: string, path: string, body?: object][] = [
      ['GET', '/events'],
      ['POST', '/messages', message('late')],
      ['POST', '/typing', { state: 'started' }],
      ['POST', '/context/page', {}],
      ['POST', '/sessions/close', { scope: 'continuity' }],
      ['DELETE', '/sessions/identify'],
      ['POST', '/commands/navigation/cmd_1/acknowledgements', { outcome: 'accepted' }],
    ]
    for (const [method, path, body] of scoped)
      await client.fails('GrantExpired', method, path, { headers: { ...headers, 'idempotency-key': 'late' }, body })
    const renewed = await client.call('POST', '/sessions/renew', renewal(visitor, headers))
    expect(renewed.status).toBe(200)
    visitor.session = renewed.body
    expect((await visitor.send('late', { clientOperationId: 'late' })).status).toBe(202)
  })

  concurrentRule('C2.12', async () => {
    const { client } = suite().short
    const visitor = await client.visitor()
    const { session } = visitor
    await visitor.send('before')
    const end = Math.min(millis(session.expiresAt) + RENEWABLE_SECONDS * 1000, millis(session.renewableUntil))
    expect(millis(session.renewableUntil)).toBe(end)
    await untilCode(visitor, 'GrantExpired')
    const tabs = []
    for (let tab = 0; tab < 3; tab++)
      tabs.push((await client.call('POST', '/sessions/renew', renewal({ ...visitor, session }, bearer(visitor)))).body)
    expect(new Set(tabs.map(({ renewalToken }) => renewalToken)).size).toBe(1)
    for (const { sessionId, conversationId } of tabs)
      expect({ sessionId, conversationId }).toMatchObject({
        sessionId: session.sessionId,
        conversationId: session.conversationId,
      })
    visitor.session = tabs[2]
    expect((await visitor.history()).map(({ body }) => body)).toEqual(['before'])
  })

  for (const id of ['C2.13', 'E.SessionExpired'])
    concurrentRule(id, async () => {
      const { client } = suite().short
      const visitor = await client.visitor()
      const headers = bearer(visitor)
      await untilCode(visitor, 'SessionExpired')
      expect(Date.now()).toBeGreaterThanOrEqual(millis(visitor.session.renewableUntil) - 1000)
      await client.fails('SessionExpired', 'GET', '/messages', { headers })
      await client.fails('SessionExpired', 'POST', '/sessions/renew', renewal(visitor, headers))
    })

  for (const id of ['C2.14', 'E.GrantExpired'])
    concurrentRule(id, () =>
      inTime(async () => {
        const { client } = suite().short
        const visitor = await client.visitor()
        await delay((GRANT_SECONDS - STREAM_SECONDS + 3) * 1000)
        const stream = await openBefore(millis(visitor.session.expiresAt), visitor)
        if (!stream) return false
        await stream.ended
        expect(stream.events).toEqual([])
        await client.fails('GrantExpired', 'GET', '/events', { headers: bearer(visitor) })
        return true
      }),
    )

  concurrentRule(
    'C4.12',
    () =>
      inTime(async () => {
        const { client } = suite().short
        const visitor = await client.visitor()
        await delay((GRANT_SECONDS - 9) * 1000)
        const first = visitor.session
        const { sessionId, renewalToken } = first
        const renewed = await client.call('POST', '/sessions/renew', {
          headers: bearer(visitor),
          body: { sessionId, renewalToken },
        })
        await delay(4000)
        const openedAfter = performance.now()
        const stream = await openBefore(millis(first.expiresAt), visitor)
        if (!stream) return false
        visitor.session = renewed.body
        // Waits until the first grant has expired. The stream stays open and the session continues.
        await delay(Math.max(0, millis(first.expiresAt) + 100 - Date.now()))
        expect((await visitor.send('on')).status).toBe(202)
        let hasEnded = false
        void stream.ended.then(() => (hasEnded = true))
        await until('the event or the end of the stream', () => hasEnded || stream.events.length === 1)
        if (stream.events.length === 0 && performance.now() - openedAfter >= STREAM_AGE_MIN_MS) return false
        expect(stream.events.map(({ type }) => type)).toEqual(['message.accepted'])
        stream.close()
        return true
      }),
    'after the grant that opened the stream has expired',
  )

  concurrentRule('C4.15', async () => {
    const visitor = await suite().short.client.visitor()
    const started = performance.now()
    // Opens the stream before the message is sent. A later stream may not get the message, because
    // the replay window is short.
    const stream = await visitor.openStream({ after: 0 })
    await sendMany(visitor, 1)
    await stream.ended
    expect(performance.now() - started).toBeLessThan(GRANT_SECONDS * 1000)
    expect(stream.events.map(({ type }) => type)).toEqual(['message.accepted'])
    expect((await visitor.send('again')).status).toBe(202)
    const resumed = await visitor.openStream({ lastEventId: stream.events[0]!.id })
    await until('the event', () => resumed.events.length === 1)
    resumed.close()
  })
}
