import { randomUUID } from 'node:crypto'
import { ConnectError } from '@connectrpc/connect'
import { expect } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer, message } from './client.ts'
import { loadDocument } from './document-check.ts'
import { openRaw } from './raw-stream.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const policyUrl = 'https://shop.example/privacy'
const fields = [{ name: 'mail', label: 'Mail', type: 'email', required: true }]
const forms = { preChat: { fields }, offline: { fields } }

/** Tests of contract section 3 about policies: capabilities, availability, consent, suppression and bans. */
export function policyRules(suite: () => Suite): void {
  /** Starts a visitor on a new connection and installation of the demo workspace. */
  async function newSite(settings: object): Promise<{ visitor: () => Promise<Visitor>; siteKey: string }> {
    const { operator, stack } = suite().roomy
    const { origin, workspaceId } = stack.demo
    const { connection } = await operator.workspaces.createConnection({ workspaceId, name: 'Policies' })
    const { connectionId } = connection!
    const { installation } = await operator.workspaces.createInstallation({
      connectionId,
      origins: [origin],
      ...settings,
    })
    const siteKey = installation!.publicSiteKey
    return { siteKey, visitor: () => stack.newVisitor({ origin, siteKey }) }
  }

  const update = (siteKey: string, settings: object) =>
    suite().roomy.operator.workspaces.updateInstallation({ siteKey, ...settings })
  const send = (visitor: Visitor, operation: string, via?: string) =>
    suite().roomy.client.call('POST', '/messages', {
      headers: { ...bearer(visitor), 'idempotency-key': operation },
      body: message(operation),
      via,
    })
  const decide = (
    visitor: Visitor,
    policyVersion: string,
    decision: string,
    key = randomUUID() as string,
    via?: string,
  ) =>
    suite().roomy.client.call('POST', '/sessions/consent', {
      headers: { ...bearer(visitor), 'idempotency-key': key },
      body: { policyVersion, decision },
      via,
    })
  const gateways = () => suite().roomy.stack.gateways.map(({ url }) => url)

  rule('C3.40', async () => {
    const { client, operator } = suite().roomy
    const capabilities = { typing: true, pageContext: true, identity: true, navigation: true, preChatForm: true }
    const { siteKey, visitor: begin } = await newSite({ capabilities, forms })
    const visitor = await begin()
    const off = Object.fromEntries(Object.keys(capabilities).map((name) => [name, false]))
    await update(siteKey, { capabilities: off })
    const requests: [path: string, body: object][] = [
      ['/typing', { state: 'started' }],
      ['/context/page', { url: 'https://shop.example/a' }],
      ['/sessions/identify', { assertion: 'x' }],
      ['/forms/pre-chat', { fields: { mail: 'ada@example.com' } }],
    ]
    for (const via of gateways())
      for (const [path, body] of requests) {
        const request = { headers: bearer(visitor), body, via }
        await until(`the refusal of ${path}`, async () => (await client.call('POST', path, request)).status === 404)
        await client.fails('RouteNotAdvertised', 'POST', path, request)
      }
    const { sessionId } = visitor.session
    await expect(operator.commands.requestNavigation({ sessionId, url: 'https://shop.example/a' })).rejects.toThrow()
    const pageContext = { url: 'https://shop.example/secret' }
    const headers = { ...bearer(visitor), 'idempotency-key': 'op' }
    expect((await client.call('POST', '/messages', { headers, body: message('op', { pageContext }) })).status).toBe(202)
    expect((await operator.sessions.getSession({ sessionId })).session?.pageContext?.url).not.toBe(pageContext.url)
  })

  rule('C3.41', async () => {
    const { client, operator } = suite().roomy
    const consent = { required: true, policyUrl, policyVersion: 'v1' }
    const { siteKey, visitor: begin } = await newSite({ consent, capabilities: { preChatForm: true }, forms })
    const visitor = await begin()
    const { body: config } = await client.call('GET', `/config/${siteKey}`)
    expect(config.consent).toEqual(consent)
    const stream = await visitor.openStream({ after: 0 })
    const headers = bearer(visitor)
    const form = { headers, body: { fields: { mail: 'ada@example.com' } } }
    const refusesAll = async () => {
      for (const via of gateways()) {
        const operation = randomUUID()
        await client.fails('ConsentRequired', 'POST', '/messages', {
          headers: { ...headers, 'idempotency-key': operation },
          body: message(operation),
          via,
        })
        await client.fails('ConsentRequired', 'POST', '/forms/pre-chat', { ...form, via })
      }
    }
    await refusesAll()
    const { conversationId } = visitor.session
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'Hello' })
    await until('the agent’s message', () => stream.events.length === 1)
    expect((await visitor.history()).map(({ body }) => body)).toEqual(['Hello'])
    expect((await decide(visitor, 'v1', 'denied')).body.decision).toBe('denied')
    await refusesAll()
    await decide(visitor, 'v1', 'granted')
    for (const via of gateways()) expect((await send(visitor, randomUUID(), via)).status).toBe(202)
    expect((await client.call('POST', '/forms/pre-chat', form)).status).toBe(202)
    stream.close()
  })

  rule('C3.42', async () => {
    const { client, operator } = suite().roomy
    const { visitor: begin } = await newSite({ consent: { required: true, policyUrl, policyVersion: 'v1' } })
    const visitor = await begin()
    const first = await decide(visitor, 'v1', 'granted', 'key')
    expect([first.status, first.body]).toEqual([
      200,
      { decision: 'granted', policyVersion: 'v1', decidedAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) },
    ])
    const again = await decide(visitor, 'v1', 'granted', 'key', gateways()[1])
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
    const { session } = await operator.sessions.getSession({ sessionId: visitor.session.sessionId })
    expect(session?.consent).toMatchObject({ decision: 1, policyVersion: 'v1', policyUrl })
    const headers = bearer(visitor)
    for (const body of [
      {},
      { policyVersion: 'v1' },
      { policyVersion: 'v0', decision: 'granted' },
      { policyVersion: 'v1', decision: 'maybe' },
      { policyVersion: 'v1', decision: 'granted', more: 1 },
    ])
      await client.fails('ValidationFailed', 'POST', '/sessions/consent', { headers, body })
    const conflict = {
      headers: { ...headers, 'idempotency-key': 'key' },
      body: { policyVersion: 'v1', decision: 'denied' },
    }
    await client.fails('IdempotencyConflict', 'POST', '/sessions/consent', conflict)
  })

  rule('C3.43', async () => {
    const { siteKey, visitor: begin } = await newSite({ consent: { required: true, policyUrl, policyVersion: 'v1' } })
    const visitor = await begin()
    await decide(visitor, 'v1', 'granted')
    expect((await send(visitor, 'accepted')).status).toBe(202)
    await update(siteKey, { consent: { required: true, policyUrl, policyVersion: 'v2' } })
    for (const via of gateways()) {
      const refused = await until('the refusal', async () => {
        const { body } = await send(visitor, randomUUID(), via)
        return body.code
      })
      expect(refused).toBe('ConsentRequired')
    }
    // A repeat of the operation that was accepted under policy v1 still gets 202.
    expect((await send(visitor, 'accepted')).status).toBe(202)
    await decide(visitor, 'v2', 'granted')
    for (const via of gateways()) expect((await send(visitor, randomUUID(), via)).status).toBe(202)
  })

  rule('C3.44', async () => {
    const { client, operator, stack } = suite().roomy
    const { workspaceId } = stack.demo
    const { visitor: begin } = await newSite({ capabilities: { preChatForm: true, offlineForm: true }, forms })
    const visitor = await begin()
    const address = `ada-${randomUUID()}@example.com`
    const entries = [{ of: { case: 'email' as const, value: address.toUpperCase() } }]
    await operator.workspaces.addSuppressions({ workspaceId, entries })
    const body = { fields: { mail: address } }
    for (const via of gateways())
      for (const path of ['/forms/pre-chat', '/forms/offline'])
        await client.fails('VisitorSuppressed', 'POST', path, { headers: bearer(visitor), body, via })
    const lead = { workspaceId, source: 'crm', fields: { email: address } }
    const refused = await operator.leads.captureLead(lead).then(String, ConnectError.from)
    expect(refused).toBeInstanceOf(ConnectError)
    expect((refused as ConnectError).findDetails(ErrorInfoSchema)[0]?.code).toBe('VisitorSuppressed')
    expect((await send(visitor, 'op')).status).toBe(202)
    await operator.workspaces.removeSuppressions({ workspaceId, entries })
    await until('the form to be accepted', async () => {
      const { status } = await client.call('POST', '/forms/offline', { headers: bearer(visitor), body })
      return status === 202
    })
  })

  rule('E.VisitorSuppressed', async () => {
    const { client, operator, stack } = suite().roomy
    const { workspaceId } = stack.demo
    const { visitor: begin } = await newSite({ capabilities: { preChatForm: true }, forms })
    const mail = `eve-${randomUUID()}@example.com`
    await operator.workspaces.addSuppressions({ workspaceId, entries: [{ of: { case: 'email', value: mail } }] })
    const request = { headers: bearer(await begin()), body: { fields: { mail } } }
    await client.fails('VisitorSuppressed', 'POST', '/forms/pre-chat', request)
  })

  rule('C3.45', async () => {
    const { client, operator, stack } = suite().roomy
    const { siteKey, visitor: begin } = await newSite({})
    const [visitor, other] = [await begin(), await begin()]
    const { sessionId } = visitor.session
    const body = () => ({ publicSiteKey: siteKey, clientInstanceId: randomUUID() })
    await operator.sessions.banVisitor({ sessionId, reason: 'x', addressBanSeconds: 3600 })
    for (const via of gateways()) await client.fails('VisitorBanned', 'POST', '/sessions', { body: body(), via })
    // The other visitor has the banned address. The open session of this visitor can still send,
    // but cannot be renewed.
    expect((await send(other, 'op')).status).toBe(202)
    const renewal = { sessionId: other.session.sessionId, renewalToken: other.session.renewalToken }
    await client.fails('VisitorBanned', 'POST', '/sessions/renew', { headers: bearer(other), body: renewal })
    // The ban of the address applies only to the connection of the banned visitor.
    expect((await stack.newVisitor()).session.sessionId).toBeDefined()
    await operator.sessions.unbanVisitor({ sessionId })
    for (const via of gateways())
      expect((await client.call('POST', '/sessions', { body: body(), via })).status).toBe(201)
  })

  rule('C4.34', async () => {
    const { client, operator } = suite().roomy
    const { siteKey, visitor: begin } = await newSite({ availability: { mode: 'online' } })
    const visitor = await begin()
    const document = await loadDocument(gateways()[0]!)
    const raw = openRaw(suite().roomy, visitor, '')
    await until('the opening', () => raw.text().includes(': open'))
    await update(siteKey, { availability: { mode: 'away' } })
    await until('the event', () => raw.text().includes('event: availability.changed'))
    const block = raw
      .text()
      .split('\n\n')
      .find((each) => each.includes('availability.changed'))!
    expect(block).not.toMatch(/^id:/m)
    const event = JSON.parse(/^data: (.*)$/m.exec(block)![1]!)
    expect(event).toMatchObject({ type: 'availability.changed', data: { online: false } })
    expect(document.eventProblems(event)).toEqual([])
    await until('the configuration', async () => {
      const { body } = await client.call('GET', `/config/${siteKey}`)
      return body.availability.online === false
    })
    // The event has no sequence number, and a stream that resumes does not get the event again.
    await visitor.send('first')
    await until('the message', () => raw.text().includes('message.accepted'))
    expect(raw.text()).toMatch(/^id: \S+-1$/m)
    raw.socket.destroy()
    const streams = await Promise.all(gateways().map((via) => visitor.openStream({ after: 0, via })))
    const { conversationId } = visitor.session
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'Hello' })
    for (const stream of streams) {
      await until('both messages', () => stream.events.length >= 2)
      expect(stream.events.map(({ type }) => type)).toEqual(['message.accepted', 'message.received'])
      stream.close()
    }
  })
}
