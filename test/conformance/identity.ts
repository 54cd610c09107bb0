import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { type AssertionChange, signAssertion } from '../support/assertion.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { type Answer, bearer, message, type Request } from './client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

export const newSubject = () => `customer-${randomUUID()}`

export const assertionOf = ({ roomy }: Suite, claims: Record<string, unknown> = {}, change: AssertionChange = {}) =>
  signAssertion({ siteKey: roomy.stack.demo.siteKey, ...roomy.stack.demo.identity }, { claims, ...change })

/** Identifies the visitor and replaces `visitor.session` by the session of the response. */
export async function identify(suite: Suite, visitor: Visitor, claims: Record<string, unknown>): Promise<Answer> {
  const answer = await suite.roomy.client.call('POST', '/sessions/identify', {
    headers: bearer(visitor),
    body: { assertion: assertionOf(suite, claims) },
  })
  expect(answer.status).toBe(200)
  visitor.session = answer.body
  return answer
}

/** Tests of contract section 3: identifying a visitor, clearing the identity, changing the subject. */
export function identityRules(suite: () => Suite): void {
  const clear = (visitor: Visitor, request: Request = {}) =>
    suite().roomy.client.call('DELETE', '/sessions/identify', { headers: bearer(visitor), ...request })

  rule('C2.10', async () => {
    const { client, operator } = suite().roomy
    const sub = newSubject()
    const [laptop, phone] = [await client.visitor(), await client.visitor()]
    await identify(suite(), laptop, { sub })
    await laptop.send('from the laptop')
    await identify(suite(), phone, { sub })
    expect(phone.session.conversationId).toBe(laptop.session.conversationId)
    expect(phone.session.sessionId).not.toBe(laptop.session.sessionId)
    expect(phone.session.continuity).toEqual({ state: 'continued' })
    await phone.send('from the phone')
    const { conversationId } = phone.session
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'for both' })
    const bodies = async (visitor: Visitor) => (await visitor.history()).map(({ body }) => body)
    expect(await bodies(laptop)).toEqual(['from the laptop', 'from the phone', 'for both'])
    expect(await bodies(phone)).toEqual(await bodies(laptop))
    // A visitor with another subject must not see the messages.
    const other = await client.visitor()
    await identify(suite(), other, { sub: newSubject() })
    expect(await bodies(other)).toEqual([])
  })

  rule('C3.22', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    await visitor.send('before')
    const { conversationId } = visitor.session
    const claims = { sub: newSubject(), name: 'Ada' }
    const first = await identify(suite(), visitor, claims)
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(first.body).toMatchObject({ conversationId, continuity: { state: 'continued' } })
    const { sessionId } = first.body
    expect(first.body.identity).toEqual({ state: 'verified', displayName: 'Ada' })
    const again = await identify(suite(), visitor, { ...claims, name: 'Ada L.' })
    expect(again.body).toMatchObject({ sessionId, conversationId })
    expect(again.body.identity).toEqual({ state: 'verified', displayName: 'Ada L.' })

    const before = bearer(visitor)
    const cleared = await clear(visitor)
    expect(cleared.status).toBe(200)
    expect(cleared.body.sessionId).not.toBe(sessionId)
    expect(cleared.body.conversationId).not.toBe(conversationId)
    expect(cleared.body).toMatchObject({ continuity: { state: 'new' }, identity: { state: 'anonymous' } })
    await client.fails('SessionClosed', 'GET', '/messages', { headers: before })
    visitor.session = cleared.body
    expect(await visitor.history()).toEqual([])
    const once = await clear(visitor)
    expect([once.body.sessionId, once.body.conversationId]).toEqual([
      cleared.body.sessionId,
      cleared.body.conversationId,
    ])
    expect((await client.call('GET', '/messages', { headers: bearer(visitor) })).status).toBe(200)
    const headers = { ...bearer(visitor), 'idempotency-key': null }
    await client.fails('IdempotencyKeyInvalid', 'DELETE', '/sessions/identify', { headers })
    await client.fails('IdempotencyKeyInvalid', 'POST', '/sessions/identify', { headers, body: { assertion: 'a' } })
  })

  rule('C3.34', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    const anonymous = visitor.session
    await visitor.send('before')
    const key = randomUUID()
    const request = {
      headers: { ...bearer(visitor), 'idempotency-key': key },
      body: { assertion: assertionOf(suite(), { sub: newSubject() }) },
    }
    const answer = await client.call('POST', '/sessions/identify', request)
    for (const field of ['sessionId', 'accessGrant', 'renewalToken'])
      expect(answer.body[field]).not.toBe(anonymous[field as keyof typeof anonymous])
    expect(answer.body.conversationId).toBe(anonymous.conversationId)
    const { sessionId, renewalToken } = anonymous
    const { headers } = request
    for (const { url: via } of stack.gateways) {
      await client.fails('SessionClosed', 'GET', '/messages', { headers, via })
      await client.fails('SessionClosed', 'GET', '/events', { headers, via })
      await client.fails('SessionClosed', 'POST', '/messages', { headers, body: message(key), via })
      await client.fails('SessionClosed', 'POST', '/sessions/renew', {
        headers,
        body: { sessionId, renewalToken },
        via,
      })
      const other = { ...request, headers: bearer(visitor), via }
      await client.fails('SessionClosed', 'POST', '/sessions/identify', other)
      const repeated = await client.call('POST', '/sessions/identify', { ...request, via })
      expect([repeated.status, repeated.body]).toEqual([200, answer.body])
      expect(repeated.headers.get('idempotency-replayed')).toBe('true')
    }
    visitor.session = answer.body
    expect((await visitor.history()).map(({ body }) => body)).toEqual(['before'])
  })

  rule('C3.36', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    await identify(suite(), visitor, { sub: newSubject() })
    const headers = { ...bearer(visitor), 'content-type': 'application/json', 'idempotency-key': randomUUID() }
    for (const body of [{ reason: 'logout' }, [], '"x"', '{'])
      await client.fails('ValidationFailed', 'DELETE', '/sessions/identify', { headers, body })
    const cleared = await client.call('DELETE', '/sessions/identify', { headers, body: {} })
    expect([cleared.status, cleared.body.identity]).toEqual([200, { state: 'anonymous' }])
    const again = await client.call('DELETE', '/sessions/identify', { headers: { ...headers, 'content-type': null } })
    expect(again.body).toEqual(cleared.body)
  })

  rule('C3.25', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    await identify(suite(), visitor, { sub: newSubject(), name: 'Ada' })
    await visitor.send('from Ada')
    const streams = await Promise.all(stack.gateways.map(({ url: via }) => visitor.openStream({ via })))
    const ada = visitor.session
    const request = {
      headers: { ...bearer(visitor), 'idempotency-key': randomUUID() },
      body: { assertion: assertionOf(suite(), { sub: newSubject(), name: 'Grace' }) },
    }
    const answer = await client.call('POST', '/sessions/identify', request)
    expect(answer.body.sessionId).not.toBe(ada.sessionId)
    expect(answer.body.conversationId).not.toBe(ada.conversationId)
    expect(answer.body.identity).toEqual({ state: 'verified', displayName: 'Grace' })
    for (const stream of streams) {
      await stream.ended
      expect(stream.events.map(({ type, data }) => [type, data])).toEqual([['session.closed', {}]])
    }
    const { sessionId, renewalToken } = ada
    const headers = { authorization: `Bearer ${ada.accessGrant}` }
    for (const { url: via } of stack.gateways) {
      await client.fails('SessionClosed', 'GET', '/messages', { headers, via })
      await client.fails('SessionClosed', 'GET', '/events', { headers, via })
      await client.fails('SessionClosed', 'POST', '/sessions/renew', {
        headers,
        body: { sessionId, renewalToken },
        via,
      })
    }
    // A client that lost the response repeats the request with its old grant and must get the same response.
    const repeated = await client.call('POST', '/sessions/identify', { ...request, via: stack.gateways[1]!.url })
    expect([repeated.status, repeated.body]).toEqual([200, answer.body])
    expect(repeated.headers.get('idempotency-replayed')).toBe('true')
    visitor.session = answer.body
    expect(await visitor.history()).toEqual([])
  })

  rule('C4.18', async () => {
    const { client, operator, stack } = suite().roomy
    const sub = newSubject()
    const [laptop, phone] = [await client.visitor(), await client.visitor()]
    await identify(suite(), laptop, { sub })
    await laptop.send('one')
    await identify(suite(), phone, { sub })
    const after = (await phone.history()).at(-1).sequence
    const streams = [await laptop.openStream({ after }), await phone.openStream({ after })]
    const { sessionId } = laptop.session
    await operator.commands.requestNavigation({ sessionId, url: `${stack.demo.origin}/a` })
    await operator.commands.requestScreenshot({ sessionId, purpose: 'To see it' })
    await identify(suite(), laptop, { sub, name: 'Ada' })
    await phone.send('two')
    const messages = ({ events }: (typeof streams)[0]) => events.filter(({ type }) => type === 'message.accepted')
    await until('the message on both', () => streams.every((stream) => messages(stream).length === 1))
    const typesOf = (index: number) =>
      streams[index]!.events.map(({ type }) => type).filter((type) => /^(nav|screen)/.test(type))
    expect(typesOf(0)).toEqual(['navigation.requested', 'screenshot.requested'])
    expect(typesOf(1)).toEqual([])
    expect(messages(streams[0]!)).toEqual(messages(streams[1]!))
    for (const stream of streams) stream.close()
    const replayed = await phone.openStream({ after })
    await until('the message', () => messages(replayed).length === 1)
    expect(replayed.events.some(({ type }) => /^(nav|screen)/.test(type))).toBe(false)
    replayed.close()
    await operator.sessions.revokeSession({ sessionId })
    expect((await phone.send('goes on')).status).toBe(202)
  })

  rule('C3.26', async () => {
    const { client } = suite().roomy
    const sub = newSubject()
    const [first, second] = [await client.visitor(), await client.visitor()]
    const stream = await first.openStream({ after: 0 })
    await identify(suite(), first, { sub })
    await stream.ended
    expect(stream.events.map(({ type, data }) => [type, data])).toEqual([
      ['session.identified', {}],
      ['session.closed', {}],
    ])
    // An anonymous session with messages keeps its conversation when the visitor is identified.
    await first.send('from the first')
    await second.send('from the second')
    const { conversationId } = second.session
    await identify(suite(), second, { sub })
    expect(second.session.conversationId).toBe(conversationId)
    expect((await second.history()).map(({ body }) => body)).toContain('from the second')
  })
}
