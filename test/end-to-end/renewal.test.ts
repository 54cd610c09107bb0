import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
let stack: Stack

beforeAll(async () => {
  const env = { RATE_LIMIT_FACTOR: '1000', GRANT_LIFETIME_SECONDS: '3', SESSION_LIFETIME_SECONDS: '12' }
  stack = await startStack({ database, cores: 2, gateways: 2, env })
})

const newVisitor = (): Promise<Visitor> =>
  startVisitor({ gatewayUrl: stack.gateways[0]!.url, origin: stack.demo.origin, siteKey: stack.demo.siteKey })

async function renew(visitor: Visitor, lastSeenEventId?: string) {
  const { sessionId, renewalToken } = visitor.session
  const answer = await visitor.call('POST', '/sessions/renew', {
    body: { sessionId, renewalToken, lastSeenEventId },
    headers: { 'Idempotency-Key': randomUUID() },
  })
  if (answer.status === 200) visitor.session = answer.body
  return answer
}

const untilRenewal = (visitor: Visitor) => delay(Math.max(0, Date.parse(visitor.session.renewAfter) - Date.now()))

describe('grants of three seconds', () => {
  it('end the streams on every gateway without a renewal, and the session cannot be renewed later', async () => {
    const visitor = await newVisitor()
    const streams = await Promise.all(stack.gateways.map(({ url }) => visitor.openStream({ via: url })))
    for (const stream of streams) {
      await stream.ended
      expect(stream.events.map(({ type }) => type)).toEqual(['session.expired'])
    }
    for (const refused of [await visitor.send('late'), await renew(visitor)]) {
      expect(refused.status).toBe(401)
      expect(refused.body).toMatchObject({ code: 'SessionExpired', retryable: false, terminal: true })
    }
  })

  it('keep a stream open while the session is renewed, up to the session’s maximum lifetime', async () => {
    const visitor = await newVisitor()
    const stream = await visitor.openStream({ after: 0, via: stack.gateways[1]!.url })
    const endsAt = Date.now() + 12_000
    let renewals = 0
    while (Date.parse(visitor.session.expiresAt) + 1000 < endsAt) {
      await untilRenewal(visitor)
      const answer = await renew(visitor, stream.events.at(-1)?.id)
      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({ replay: { state: 'ready' }, continuity: { state: 'continued' } })
      renewals += 1
      const { sequence } = (await visitor.send(`after renewal ${renewals}`)).body
      await until('the message', () => stream.events.some((event) => event.sequence === sequence))
    }
    expect(renewals).toBeGreaterThan(2)
    await stream.ended
    expect(stream.events.at(-1)?.type).toBe('session.expired')
    expect(Date.now()).toBeGreaterThan(endsAt - 2000)
    expect((await renew(visitor)).body).toMatchObject({ code: 'SessionExpired', terminal: true })
  })
})
