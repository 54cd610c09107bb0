import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { expect } from 'vitest'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { newSite } from '../support/resources.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer } from './client.ts'
import { identify, newSubject } from './identity.ts'
import { sendAgentMessages } from './replay.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString('utf8'))
const millis = (time: string) => new Date(time).getTime()
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Tests of contract section 2: grants and their renewal. */
export function sessionRules(suite: () => Suite, database: TestDatabase): void {
  async function renew(visitor: Visitor, more: object = {}) {
    const { sessionId, renewalToken } = visitor.session
    return suite().roomy.client.call('POST', '/sessions/renew', {
      headers: bearer(visitor),
      body: { sessionId, renewalToken, ...more },
    })
  }

  rule('C2.1', async () => {
    const { client, stack } = suite().roomy
    const { session } = await client.visitor()
    const [header, payload, signature] = session.accessGrant.split('.')
    expect(decode(header)).toEqual({ alg: 'HS256', typ: 'service-access-grant+jwt', kid: expect.any(String) })
    const claims = decode(payload)
    expect(claims).toEqual({
      sid: session.sessionId,
      aud: 'service.widget.public-api',
      org: stack.demo.origin,
      iat: expect.any(Number),
      exp: claims.iat + 900,
    })
    expect(millis(session.expiresAt)).toBe(claims.exp * 1000)
    expect(Buffer.from(signature, 'base64url')).toHaveLength(32)
  })

  rule('C2.2', async () => {
    const { session } = await suite().roomy.client.visitor()
    expect(millis(session.expiresAt) - millis(session.renewAfter)).toBe(300_000)
    expect(millis(session.renewableUntil) - millis(session.expiresAt)).toBe(7_200_000)
  })

  rule('C2.3', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const first = await renew(visitor)
    expect(first.status).toBe(200)
    expect(first.body.renewalToken).not.toBe(visitor.session.renewalToken)
    const sameAgain = await renew(visitor)
    expect(sameAgain.status).toBe(200)
    expect(sameAgain.body.renewalToken).toBe(first.body.renewalToken)
    expect(first.body.sessionId).toBe(visitor.session.sessionId)
    expect(first.body.continuity.state).toBe('continued')
  })

  rule('C2.4', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const { sessionId, renewalToken } = visitor.session
    const second = (await renew(visitor)).body.renewalToken
    expect((await renew(visitor, { renewalToken: second })).status).toBe(200)
    await client.fails('GrantInvalid', 'POST', '/sessions/renew', {
      headers: bearer(visitor),
      body: { sessionId, renewalToken },
    })
    expect((await client.call('GET', '/messages', { headers: bearer(visitor) })).status).toBe(200)
  })

  rule('C2.6', async () => {
    const { client } = suite().roomy
    const { session } = await client.visitor()
    const [header, payload, signature] = session.accessGrant.split('.') as [string, string, string]
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const first = signature[0] === 'A' ? 'B' : 'A'
    const forged = [
      `${header}.${payload}.${first}${signature.slice(1)}`,
      `${header}.${encode({ ...decode(payload), sid: 'ses_other' })}.${signature}`,
      `${header}.${encode({ ...decode(payload), exp: decode(payload).exp + 900 })}.${signature}`,
      `${encode({ ...decode(header), alg: 'none' })}.${payload}.`,
      `${encode({ ...decode(header), kid: 'other' })}.${payload}.${signature}`,
      `${header}.${encode({ ...decode(payload), aud: 'other' })}.${signature}`,
      session.renewalToken,
      'x'.repeat(4000),
    ]
    for (const grant of forged)
      await client.fails('GrantInvalid', 'GET', '/messages', { headers: { authorization: `Bearer ${grant}` } })
  })

  rule('C2.7', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    for (const content of [visitor.session, (await renew(visitor)).body]) {
      expect(Object.keys(content).sort()).toEqual(
        'accessGrant continuity conversationId expiresAt identity renewAfter renewableUntil renewalToken replay sessionId'.split(
          ' ',
        ),
      )
      expect(Object.keys(content.replay).sort()).toEqual(['epoch', 'lastSequence', 'oldestSequence', 'state'])
      for (const time of [content.expiresAt, content.renewAfter, content.renewableUntil]) expect(time).toMatch(rfc3339)
      expect(content.sessionId).toMatch(/^ses_[A-Za-z0-9]{20,}$/)
      expect(content.conversationId).toMatch(/^cnv_[A-Za-z0-9]{20,}$/)
    }
    expect(visitor.session.continuity).toEqual({ state: 'new' })
    expect(visitor.session.identity).toEqual({ state: 'anonymous' })
  })

  rule('C2.8', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const { replayWindowEvents } = suite()
    const { epoch } = visitor.session.replay
    const last = replayWindowEvents + 2
    await sendAgentMessages(suite(), visitor, last)
    const states: [string, string][] = [
      [`${epoch}-${last}`, 'ready'],
      [`${epoch}-${last - replayWindowEvents}`, 'ready'],
      [`${epoch}-1`, 'reset_required'],
      [`${epoch}-${last + 1}`, 'reset_required'],
      [`other-${last}`, 'reset_required'],
    ]
    for (const [lastSeenEventId, state] of states) {
      const { body } = await renew(visitor, { lastSeenEventId })
      expect(body.replay, lastSeenEventId).toMatchObject({ state, epoch, lastSequence: last, oldestSequence: 3 })
      expect(body.continuity.state).toBe(state === 'ready' ? 'continued' : 'reset')
      visitor.session = body
    }
  })

  rule('C2.9', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const renewed = await renew(visitor)
    await visitor.send('hello')
    const mongo = new MongoClient(database.uri)
    const db = mongo.db(database.name)
    const stored: string[] = []
    for (const { name } of await db.listCollections().toArray())
      stored.push(JSON.stringify(await db.collection(name).find().toArray()))
    await mongo.close()
    const all = stored.join('')
    expect(all).toContain(visitor.session.sessionId)
    for (const { accessGrant, renewalToken } of [visitor.session, renewed.body]) {
      expect(all).not.toContain(accessGrant.split('.')[2])
      expect(all).not.toContain(renewalToken.split('.').at(-1))
    }
  })
}

/** Tests of contract sections 1 and 3: the end of sessions. */
export function sessionEndRules(suite: () => Suite): void {
  rule('C3.10', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const { sessionId } = visitor.session
    const closed = await client.call('POST', '/sessions/close', { headers: bearer(visitor), body: { scope: 'panel' } })
    expect([closed.status, closed.body]).toEqual([200, { sessionId, state: 'active' }])
    expect((await visitor.send('still here')).status).toBe(202)
  })

  rule('C3.11', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    const { sessionId, renewalToken } = visitor.session
    const headers = bearer(visitor)
    const closed = await client.call('POST', '/sessions/close', { headers, body: { scope: 'continuity' } })
    expect([closed.status, closed.body]).toEqual([200, { sessionId, state: 'closed' }])
    for (const { url: via } of stack.gateways) {
      await client.fails('SessionClosed', 'GET', '/messages', { headers, via })
      await client.fails('SessionClosed', 'GET', '/events', { headers, via })
      const body = { sessionId, renewalToken }
      await client.fails('SessionClosed', 'POST', '/sessions/renew', { headers, body, via })
    }
  })

  rule('C3.35', async () => {
    const { client, stack } = suite().roomy
    const sub = newSubject()
    const [one, two] = [await client.visitor(), await client.visitor()]
    await identify(suite(), one, { sub })
    await one.send('before')
    const headers = { ...bearer(one), 'idempotency-key': randomUUID() }
    const close = (scope: string, via: string) => ({ headers, body: { scope }, via })
    const answers = []
    for (const { url } of stack.gateways)
      answers.push(await client.call('POST', '/sessions/close', close('continuity', url)))
    const [first, second] = answers
    expect([first?.status, first?.body.state]).toEqual([200, 'closed'])
    expect([second?.status, second?.body]).toEqual([200, first?.body])
    expect(second?.headers.get('idempotency-replayed')).toBe('true')
    for (const { url } of stack.gateways)
      await client.fails('IdempotencyConflict', 'POST', '/sessions/close', close('panel', url))
    await client.fails('SessionClosed', 'POST', '/sessions/close', {
      headers: bearer(one),
      body: { scope: 'continuity' },
    })
    await identify(suite(), two, { sub })
    expect(two.session.conversationId).not.toBe(one.session.conversationId)
    expect(await two.history()).toEqual([])
  })

  rule('C3.37', async () => {
    const { client, operator, stack } = suite().roomy
    const { origin } = stack.demo
    const { siteKey, connectionId } = await newSite(suite().roomy.operator, [origin])
    const start = () => stack.newVisitor({ origin, siteKey })
    const [streaming, silent] = [await start(), await start()]
    const stream = await streaming.openStream()
    await operator.workspaces.setConnectionStatus({ connectionId, status: ConnectionStatus.DISABLED })
    await stream.ended
    expect(stream.events.map(({ type, data }) => [type, data])).toEqual([['connection.disabled', {}]])
    await operator.workspaces.setConnectionStatus({ connectionId, status: ConnectionStatus.ENABLED })
    for (const { url: via } of stack.gateways) {
      for (const visitor of [streaming, silent])
        await client.fails('ConnectionDisabled', 'GET', '/events', { headers: bearer(visitor), via })
    }
    const next = await until('a new session', () => start().catch(() => undefined))
    expect((await next.send('begins anew')).status).toBe(202)
  })

  rule('C3.3', async () => {
    const { client } = suite().roomy
    const [one, two] = [await client.visitor(), await client.visitor()]
    const { sessionId, renewalToken } = two.session
    await client.fails('GrantInvalid', 'POST', '/sessions/renew', {
      headers: { ...bearer(one), 'idempotency-key': randomUUID() },
      body: { sessionId, renewalToken },
    })
  })
}
