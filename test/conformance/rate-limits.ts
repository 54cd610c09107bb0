import { expect } from 'vitest'
import { newSite } from '../support/resources.ts'
import { until, untilSettled } from '../support/until.ts'
import { bearer } from './client.ts'
import { inTime, rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 1: rate limits. */
export function rateRules(suite: () => Suite): void {
  const address = (last: number) => suite().fromAddress(last)

  rule('C1.50', () =>
    inTime(async () => {
      const { client } = suite().limited
      const visitor = await client.visitor()
      const answers = []
      const started = performance.now()
      for (let index = 0; index < 12; index++) answers.push(await visitor.send(`message ${index}`))
      expect(answers.slice(0, 10).map(({ status }) => status)).toEqual(Array(10).fill(202))
      // After four seconds, the limit allows two more messages.
      if (performance.now() - started > 4000) return false
      const { body, headers } = answers[11]!
      expect(body).toMatchObject({ code: 'RateLimited', retryable: true, terminal: false })
      expect(body.retryAfter).toBeLessThanOrEqual(2)
      expect(headers.get('retry-after')).toBe(String(body.retryAfter))
      // The limit per session allows one more request every two seconds.
      await until('another token', async () => (await visitor.send('later')).status === 202)
      return true
    }),
  )

  rule('C1.51', async () => {
    const { client, stack } = suite().limited
    const config = (last: number) => client.call('GET', `/config/${stack.demo.siteKey}`, { headers: address(last) })
    const create = () =>
      client.call('POST', '/sessions', {
        headers: address(51),
        body: { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'i' },
      })
    const allowed = async (count: number, call: () => Promise<{ status: number }>) => {
      const started = performance.now()
      const statuses = (await inLanes(count, call)).map(({ status }) => status)
      expect(statuses.filter((status) => status >= 300 && status !== 429)).toEqual([])
      return {
        count: statuses.filter((status) => status < 300).length,
        minutes: (performance.now() - started) / 60_000,
      }
    }
    const configs = await allowed(300, () => config(51))
    expect(configs.count).toBeGreaterThanOrEqual(240)
    expect(configs.count).toBeLessThanOrEqual(240 * (1 + configs.minutes))
    const sessions = await allowed(80, create)
    expect(sessions.count).toBeGreaterThanOrEqual(60)
    expect(sessions.count).toBeLessThanOrEqual(60 * (1 + sessions.minutes))
    expect((await config(52)).status).toBe(200)
  })

  rule('C1.52', async () => {
    const { client } = suite().limited
    const visitor = await client.visitor()
    const headers = bearer(visitor)
    const started = performance.now()
    const answers = await inLanes(160, () => client.call('GET', '/messages', { headers }))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(120)
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(
      120 * (1 + (performance.now() - started) / 60_000),
    )
    expect(statuses).toContain(429)
    expect((await visitor.send('still')).status).toBe(202)
  })

  rule('C1.54', async () => {
    const { client } = suite().limited
    const visitor = await client.visitor()
    const from = { ...bearer(visitor), ...address(54) }
    expect((await client.call('GET', '/messages', { headers: from })).status).toBe(200)
    const sendRejected = (index: number) =>
      index % 2 === 0
        ? client.call('GET', '/messages', { headers: { ...from, authorization: `Bearer forged-${index}` } })
        : client.call('GET', '/messages', { headers: { ...from, origin: `https://${index}.evil.example` } })
    const started = performance.now()
    const answers = await inLanes(200, sendRejected)
    const statuses = answers.map(({ status }) => status)
    const answered = statuses.filter((status) => status === 401 || status === 403).length
    expect(answered).toBeGreaterThanOrEqual(120)
    expect(answered).toBeLessThanOrEqual(120 * (1 + (performance.now() - started) / 60_000))
    expect(statuses.filter((status) => status === 429).length).toBe(200 - answered)
    expect((await client.call('GET', '/messages', { headers: from })).status).toBe(200)
    const elsewhere = { ...from, ...address(55), authorization: 'Bearer forged' }
    expect((await client.call('GET', '/messages', { headers: elsewhere })).status).toBe(401)
  })

  rule('C1.20', async () => {
    const { client } = suite().limited
    const visitor = await client.visitor()
    const answers = await inLanes(30, () => visitor.send('one of many'))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    for (const { headers, body } of refused) {
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      expect(headers.get('retry-after')).toBe(String(body.retryAfter))
    }
  })

  rule('C1.53', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const streams = []
    for (let index = 0; index < 7; index++) streams.push(await visitor.openStream())
    await untilSettled('the end of the first stream', streams[0]!.ended)
    await visitor.send('hello')
    for (const stream of streams.slice(1)) {
      await until('the event', () => stream.events.length === 1)
      stream.close()
    }
    expect(streams[0]!.events).toEqual([])
  })

  rule(
    'C1.3',
    async () => {
      const { stack } = suite().roomy
      const { siteKey } = await newSite(suite().roomy.operator, ['https://*.visitors.example'])
      const visitor = await stack.newVisitor({ origin: 'https://a.b.visitors.example', siteKey })
      expect((await visitor.send('from a wildcard')).status).toBe(202)
    },
    'a session from a wildcard origin',
  )
}

/** Makes at most eight calls at a time, so that a busy machine can answer them. */
async function inLanes<T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> {
  const indexes = Array.from({ length: count }, (_, index) => index).values()
  const answers: T[] = []
  const lane = async () => {
    for (const index of indexes) answers.push(await call(index))
  }
  await Promise.all(Array.from({ length: 8 }, lane))
  return answers
}
