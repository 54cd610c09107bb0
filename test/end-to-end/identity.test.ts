import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type AssertionChange, signAssertion } from '../support/assertion.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { type Answer, startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
let stack: Stack
let gatewayA: string
let gatewayB: string
let operator: Operator

beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '1000' } })
  gatewayA = stack.gateways[0]!.url
  gatewayB = stack.gateways[1]!.url
  operator = operatorOf(stack.cores[1]!.url, stack.demo.serviceToken)
})

const newVisitor = (gatewayUrl = gatewayA): Promise<Visitor> =>
  startVisitor({ gatewayUrl, origin: stack.demo.origin, siteKey: stack.demo.siteKey })

const sign = (claims: Record<string, unknown> = {}, change: AssertionChange = {}) =>
  signAssertion({ siteKey: stack.demo.siteKey, ...stack.demo.identity }, { claims, ...change })

const newSubject = () => `customer-${randomUUID()}`

/** Identifies the visitor and replaces its session with the one of the answer. */
async function identify(visitor: Visitor, claims: Record<string, unknown>, via?: string): Promise<Answer> {
  const answer = await post(visitor, sign(claims), { via })
  if (answer.status === 200) visitor.session = answer.body
  return answer
}

const post = (visitor: Visitor, assertion: string, { key = randomUUID() as string, via = gatewayA } = {}) =>
  visitor.call('POST', '/sessions/identify', { body: { assertion }, headers: { 'Idempotency-Key': key }, via })

async function clear(visitor: Visitor): Promise<Answer> {
  const answer = await visitor.call('DELETE', '/sessions/identify', { headers: { 'Idempotency-Key': randomUUID() } })
  if (answer.status === 200) visitor.session = answer.body
  return answer
}

const answerAsAgent = (conversationId: string, body: string) =>
  operator.messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body })

/** The same visitor with an earlier session, like a tab that missed the change. */
const withSession = (visitor: Visitor, session: unknown): Visitor => {
  const tab = Object.create(visitor)
  tab.call = (method: string, path: string, options: Parameters<Visitor['call']>[2] = {}) =>
    visitor.call(method, path, {
      ...options,
      headers: { ...options.headers, Authorization: `Bearer ${(session as { accessGrant: string }).accessGrant}` },
    })
  return tab
}

describe('a visitor with a valid assertion', () => {
  it('is verified, and operators see the claims', async () => {
    const visitor = await newVisitor()
    const sub = newSubject()
    const anonymous = visitor.session
    const answer = await identify(visitor, { sub, name: 'Ada', ctx: { plan: 'pro', seats: 3, trial: false } })
    const { sessionId } = visitor.session
    expect(sessionId).not.toBe(anonymous.sessionId)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toMatchObject({ sessionId, identity: { state: 'verified', displayName: 'Ada' } })
    const { session } = await operator.sessions.getSession({ sessionId })
    expect(session).toMatchObject({
      identityState: 'verified',
      externalSubject: sub,
      displayName: 'Ada',
      context: { plan: 'pro', seats: 3, trial: false },
    })
  })

  it('shares one conversation across devices, live and in history', async () => {
    const sub = newSubject()
    const laptop = await newVisitor(gatewayA)
    const phone = await newVisitor(gatewayB)
    await identify(laptop, { sub })
    await laptop.send('from the laptop')
    const answer = await identify(phone, { sub }, gatewayB)
    expect(answer.body).toMatchObject({
      conversationId: laptop.session.conversationId,
      continuity: { state: 'continued' },
    })
    const [onLaptop, onPhone] = [await laptop.openStream({ after: 0 }), await phone.openStream({ after: 0 })]
    await phone.send('from the phone')
    await answerAsAgent(laptop.session.conversationId, 'for both')
    const expected = ['from the laptop', 'from the phone', 'for both']
    for (const stream of [onLaptop, onPhone]) {
      const bodies = () => stream.events.flatMap(({ data }) => data.message?.body ?? [])
      await until('three messages', () => bodies().length === 3)
      expect(bodies()).toEqual(expected)
      expect(stream.events.filter(({ type }) => type.startsWith('session.'))).toEqual([])
      stream.close()
    }
    expect((await phone.history()).map(({ body }) => body)).toEqual(expected)
  })

  it('loses the anonymous session: its streams end on every gateway and its grant is rejected', async () => {
    const sub = newSubject()
    const laptop = await newVisitor()
    await identify(laptop, { sub })
    await laptop.send('before')
    const phone = await newVisitor()
    const streams = [await phone.openStream(), await phone.openStream({ via: gatewayB })]
    const anonymous = phone.session
    await identify(phone, { sub })
    for (const stream of streams) {
      await stream.ended
      expect(stream.events.map(({ type }) => type)).toEqual(['session.identified', 'session.closed'])
    }
    const staleTab = withSession(phone, anonymous)
    for (const [method, path] of [
      ['GET', '/messages'],
      ['GET', '/events'],
    ] as const)
      expect((await staleTab.call(method, path)).body).toMatchObject({ code: 'SessionClosed', terminal: true })
    expect((await phone.history()).map(({ body }) => body)).toEqual(['before'])
    const resumed = await phone.openStream({ after: phone.session.replay.lastSequence, via: gatewayB })
    await laptop.send('after')
    await until('the message', () => resumed.events.length > 0)
    expect(resumed.events.map(({ data }) => data.message?.body)).toEqual(['after'])
    resumed.close()
  })

  it('gets the same answer when it repeats the request on another gateway', async () => {
    const visitor = await newVisitor()
    const assertion = sign({ sub: newSubject(), name: 'Ada' })
    const key = randomUUID()
    const first = await post(visitor, assertion, { key })
    const again = await post(visitor, assertion, { key, via: gatewayB })
    expect([first.status, again.status]).toEqual([200, 200])
    expect(again.body).toEqual(first.body)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect((await post(visitor, assertion)).body).toMatchObject({ code: 'SessionClosed' })
    visitor.session = first.body
    const replayed = await post(visitor, assertion)
    expect(replayed.body).toMatchObject({ code: 'IdentityAssertionReplayed', terminal: false })
  })
})

describe('a change of subject', () => {
  it('keeps messages of the two subjects apart', async () => {
    const visitor = await newVisitor()
    await identify(visitor, { sub: newSubject(), name: 'Ada' })
    await visitor.send("Ada's question")
    const ada = visitor.session
    const adasStreams = [await visitor.openStream({ after: 0 }), await visitor.openStream({ after: 0, via: gatewayB })]
    const assertion = sign({ sub: newSubject(), name: 'Grace' })
    const key = randomUUID()
    const answer = await post(visitor, assertion, { key })
    expect(answer.body).toMatchObject({ identity: { state: 'verified', displayName: 'Grace' } })
    expect(answer.body.sessionId).not.toBe(ada.sessionId)
    expect(answer.body.conversationId).not.toBe(ada.conversationId)

    for (const stream of adasStreams) {
      await stream.ended
      expect(stream.events.at(-1)).toMatchObject({ type: 'session.closed', data: {} })
    }
    // Requests of a tab that missed the change, on each gateway.
    for (const via of [gatewayA, gatewayB]) {
      const late = [
        await visitor.send('late', { via }),
        await visitor.call('GET', '/messages', { via }),
        await visitor.call('POST', '/sessions/renew', {
          body: { sessionId: ada.sessionId, renewalToken: ada.renewalToken },
          headers: { 'Idempotency-Key': randomUUID() },
          via,
        }),
        await post(visitor, sign({ sub: newSubject() }), { via }),
      ]
      for (const refused of late) {
        expect(refused.status).toBe(401)
        expect(refused.body).toMatchObject({ code: 'SessionClosed', terminal: true })
        expect(refused.headers.get('access-control-allow-origin')).toBe(stack.demo.origin)
      }
      expect((await visitor.openStream({ via })).status).toBe(401)
    }
    // If the answer was lost, the ended grant gets it again.
    expect((await post(visitor, assertion, { key, via: gatewayB })).body).toEqual(answer.body)

    visitor.session = answer.body
    const graces = await visitor.openStream({ after: 0, via: gatewayB })
    await answerAsAgent(ada.conversationId, "for Ada's eyes")
    await visitor.send("Grace's question")
    await answerAsAgent(visitor.session.conversationId, "for Grace's eyes")
    await until('both messages', () => graces.events.length >= 2)
    const seen = JSON.stringify([graces.events, await visitor.history()])
    expect(seen).not.toContain('Ada')
    expect(JSON.stringify(adasStreams.map(({ events }) => events))).not.toContain('Grace')
    graces.close()
  })

  it('to anonymous starts a session with an empty conversation, and a repeat changes nothing', async () => {
    const visitor = await newVisitor()
    await identify(visitor, { sub: newSubject(), name: 'Ada' })
    await visitor.send("Ada's question")
    const ada = visitor.session
    const stream = await visitor.openStream()
    const cleared = await clear(visitor)
    expect(cleared.body).toMatchObject({ identity: { state: 'anonymous' }, continuity: { state: 'new' } })
    expect(cleared.body.identity).not.toHaveProperty('displayName')
    await stream.ended
    expect(stream.events.at(-1)?.type).toBe('session.closed')
    expect(await visitor.history()).toEqual([])
    const again = await clear(visitor)
    expect(again.body).toMatchObject({
      sessionId: cleared.body.sessionId,
      conversationId: cleared.body.conversationId,
      renewalToken: cleared.body.renewalToken,
      expiresAt: cleared.body.expiresAt,
    })
    expect((await withSession(visitor, ada).call('GET', '/messages')).body).toMatchObject({ code: 'SessionClosed' })
  })
})

describe('an invalid assertion', () => {
  it.each<[string, string, () => string]>([
    [
      'signed with a wrong key',
      'IdentityAssertionInvalid',
      () => signAssertion({ siteKey: 'pk_demo', kid: 'demo', secret: 'x' }),
    ],
    ['without a signature', 'IdentityAssertionInvalid', () => sign({}, { header: { alg: 'none' }, hash: 'none' })],
    ['that is only a hash', 'IdentityAssertionInvalid', () => 'a'.repeat(64)],
    ['for another site', 'IdentityAssertionInvalid', () => sign({ aud: 'pk_other' })],
    ['that is expired', 'IdentityAssertionExpired', () => sign({ iat: 1_700_000_000, exp: 1_700_000_100 })],
  ])('%s gets a 401 with CORS headers and leaves the session unchanged', async (_, code, make) => {
    const visitor = await newVisitor()
    await visitor.send('hello')
    const answer = await post(visitor, make())
    expect(answer.status).toBe(401)
    expect(answer.body).toMatchObject({ code, retryable: false, terminal: false })
    expect(answer.headers.get('access-control-allow-origin')).toBe(stack.demo.origin)
    expect(answer.headers.get('access-control-expose-headers')).toContain('X-Correlation-Id')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    const { session } = await operator.sessions.getSession({ sessionId: visitor.session.sessionId })
    expect(session).toMatchObject({ identityState: 'anonymous', state: 'active' })
    expect(session?.externalSubject).toBeUndefined()
    expect((await visitor.send('still here')).status).toBe(202)
  })

  it('leaves a verified visitor unchanged', async () => {
    const visitor = await newVisitor()
    await identify(visitor, { sub: newSubject(), name: 'Ada' })
    expect((await post(visitor, `${sign({ name: 'Mallory' })}x`)).status).toBe(401)
    const { session } = await operator.sessions.getSession({ sessionId: visitor.session.sessionId })
    expect(session).toMatchObject({ identityState: 'verified', displayName: 'Ada' })
    expect((await visitor.send('still Ada')).status).toBe(202)
  })
})

describe('the page context of a visitor', () => {
  it('is visible to operators without query and fragment of its URLs', async () => {
    const visitor = await newVisitor()
    const { sessionId } = visitor.session
    const report = (url: string, headers: Record<string, string> = {}) =>
      visitor.call('POST', '/context/page', {
        body: {
          url,
          title: 'Cart',
          referrer: 'https://search.example/?q=secret',
          viewport: { width: 800, height: 600 },
        },
        headers,
      })
    const answer = await report('https://shop.example/cart?coupon=secret#secret')
    expect([answer.status, answer.body]).toEqual([204, undefined])
    const { session } = await operator.sessions.getSession({ sessionId })
    expect(session?.pageContext).toMatchObject({
      url: 'https://shop.example/cart',
      title: 'Cart',
      referrer: 'https://search.example',
      viewport: { width: 800, height: 600 },
    })
    expect(session?.pageContextAt).toBeDefined()
    expect((await report('https://shop.example/checkout', { 'Idempotency-Key': randomUUID() })).status).toBe(204)
    const later = (await operator.sessions.getSession({ sessionId })).session
    expect(later?.pageContext?.url).toBe('https://shop.example/checkout')
  })
})
