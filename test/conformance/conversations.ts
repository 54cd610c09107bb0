import { beforeAll, expect } from 'vitest'
import { TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { until } from '../support/until.ts'
import type { StreamEvent, Visitor } from '../support/visitor.ts'
import { bearer, message } from './client.ts'
import { loadDocument } from './document-check.ts'
import { identify, newSubject } from './identity.ts'
import { openRaw } from './raw-stream.ts'
import { inTime, rule } from './rule.ts'
import type { Suite } from './suite.ts'

const TYPING_SECONDS = 8
const ada = { displayName: 'Ada', avatarUrl: 'https://a.example/ada.png' }

/**
 * Tests of contract sections 3 and 4: typing, message states, assigned agents,
 * closing and reopening of conversations, forms, and the retry route.
 */
export function conversationRules(suite: () => Suite): void {
  /**
   * Resolves when an agent's typing has expired. The typing starts before the first test, and the
   * other tests run meanwhile.
   */
  let untilTypingEnds: Promise<{ seconds: number; events: StreamEvent[] }> | undefined

  async function letTypingEnd() {
    const { client, operator, stack } = suite().roomy
    const visitor = await client.visitor()
    const stream = await visitor.openStream({ via: stack.gateways[1]!.url })
    const { conversationId } = visitor.session
    // The typing starts within the call, which may take long on a busy machine.
    const started = performance.now()
    await operator.messaging.setTyping({ conversationId, state: TypingState.STARTED, agent: ada })
    await until('the end of typing', () => stream.events.length >= 2)
    stream.close()
    return { seconds: (performance.now() - started) / 1000, events: stream.events }
  }

  beforeAll(() => {
    untilTypingEnds = letTypingEnd()
    untilTypingEnds.catch(() => {})
  })

  /** Starts a visitor on a new installation of the demo workspace with these settings. */
  async function visitorOf(settings: object): Promise<{ visitor: Visitor; siteKey: string }> {
    const { operator, stack } = suite().roomy
    const { origin, workspaceId } = stack.demo
    const { connection } = await operator.workspaces.createConnection({ workspaceId, name: 'Site' })
    const { installation } = await operator.workspaces.createInstallation({
      connectionId: connection!.connectionId,
      origins: [origin],
      ...settings,
    })
    const siteKey = installation!.publicSiteKey
    return { siteKey, visitor: await stack.newVisitor({ origin, siteKey }) }
  }

  rule('C3.24', async () => {
    const { client, operator, stack } = suite().roomy
    const fields = [
      { name: 'mail', label: 'Mail', type: 'email', required: true },
      { name: 'text', label: 'Text', type: 'textarea', maxLength: 10 },
    ]
    const { visitor, siteKey } = await visitorOf({
      capabilities: { preChatForm: true, offlineForm: true },
      forms: { preChat: { fields }, offline: { fields } },
    })
    const { body: config } = await client.call('GET', `/config/${siteKey}`)
    expect(config.capabilities).toMatchObject({ preChatForm: true, offlineForm: true })
    for (const form of [config.forms.preChat, config.forms.offline])
      expect(form.fields.map(({ name }: { name: string }) => name)).toEqual(['mail', 'text'])
    const partial = await visitorOf({
      capabilities: { offlineForm: true },
      forms: { preChat: { fields }, offline: { fields } },
    })
    expect((await client.call('GET', `/config/${partial.siteKey}`)).body.forms).toEqual({
      offline: { fields: [{ ...fields[0], maxLength: 254 }, expect.objectContaining(fields[1]!)] },
    })
    for (const path of ['/forms/pre-chat', '/forms/offline']) {
      const headers = { ...bearer(visitor), 'idempotency-key': `key-${path.slice(7)}` }
      const body = { fields: { mail: 'mia@example.org', text: 'a\nb' } }
      const first = await client.call('POST', path, { headers, body })
      expect([first.status, first.body]).toEqual([202, { formSubmissionId: expect.any(String) }])
      const again = await client.call('POST', path, { headers, body, via: stack.gateways[1]!.url })
      expect(again.body).toEqual(first.body)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      await client.fails('IdempotencyConflict', 'POST', path, { headers, body: { fields: { mail: 'x@y.zz' } } })
      for (const bad of [
        {},
        { fields: {} },
        { fields: { mail: 'no address' } },
        { fields: { mail: 7 } },
        { fields: { mail: 'mia@example.org', phone: '1' } },
        { fields: { mail: 'mia@example.org', text: 'x'.repeat(11) } },
        { fields: { mail: 'mia@example.org' }, more: 1 },
      ])
        await client.fails('ValidationFailed', 'POST', path, { headers: bearer(visitor), body: bad })
    }
    await operator.workspaces.updateInstallation({ siteKey, capabilities: { preChatForm: false } })
    const late = { headers: bearer(visitor), body: { fields: { mail: 'mia@example.org' } } }
    await expect
      .poll(async () => (await client.call('POST', '/forms/pre-chat', late)).body.code)
      .toBe('RouteNotAdvertised')
  })

  rule('E.RouteNotAdvertised', async () => {
    const { client } = suite().roomy
    const headers = bearer(await client.visitor())
    for (const path of ['/forms/pre-chat', '/forms/offline'])
      await client.fails('RouteNotAdvertised', 'POST', path, { headers, body: { fields: {} } })
    await client.fails('RouteNotAdvertised', 'POST', '/messages/op/retry', {
      headers: { ...headers, 'idempotency-key': 'op' },
      body: message('op'),
    })
  })

  rule('C3.32', async () => {
    const { client } = suite().roomy
    const { visitor } = await visitorOf({ capabilities: { messageRetryRoute: true } })
    const headers = { ...bearer(visitor), 'idempotency-key': 'op' }
    const first = await client.call('POST', '/messages', { headers, body: message('op') })
    const retried = await client.call('POST', '/messages/op/retry', { headers, body: message('op') })
    expect([retried.status, retried.body]).toEqual([202, first.body])
    expect(retried.headers.get('idempotency-replayed')).toBe('true')
    await client.fails('IdempotencyConflict', 'POST', '/messages/op/retry', {
      headers,
      body: message('op', { body: 'x' }),
    })
    await client.fails('IdempotencyKeyMismatch', 'POST', '/messages/op/retry', {
      headers: { ...headers, 'idempotency-key': 'other' },
      body: message('op'),
    })
    await client.fails('ValidationFailed', 'POST', '/messages/other/retry', { headers, body: message('op') })
    // The retry route also accepts a message if the service has received no earlier request for it.
    const lost = { ...headers, 'idempotency-key': 'lost' }
    expect((await client.call('POST', '/messages/lost/retry', { headers: lost, body: message('lost') })).status).toBe(
      202,
    )
    expect(await visitor.history()).toHaveLength(2)
  })

  rule('C3.33', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const headers = { ...bearer(visitor), 'idempotency-key': null }
    for (const state of ['started', 'started', 'stopped', 'stopped']) {
      const answer = await client.call('POST', '/typing', { headers, body: { state } })
      expect([answer.status, answer.text]).toEqual([204, ''])
    }
    for (const body of [{}, { state: 'thinking' }, { state: 'started', for: 'ever' }])
      await client.fails('ValidationFailed', 'POST', '/typing', { headers, body })
  })

  rule('C4.30', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    const { conversationId } = visitor.session
    const live = await visitor.openStream()
    for (const state of [TypingState.STARTED, TypingState.STOPPED])
      await operator.messaging.setTyping({ conversationId, state, agent: ada })
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'Hi', agent: ada })
    await until('three events', () => live.events.length === 3)
    const author = { kind: 'agent', ...ada }
    const { epoch } = visitor.session.replay
    expect(live.events.slice(0, 2)).toEqual([
      { id: `${epoch}-1`, type: 'typing.started', sequence: 1, data: { author } },
      { id: `${epoch}-2`, type: 'typing.stopped', sequence: 2, data: { author } },
    ])
    for (const after of [0, 1]) {
      const later = await visitor.openStream({ after })
      await until('the message', () => later.events.length > 0)
      expect(later.events).toEqual([live.events[2]])
      later.close()
    }
    live.close()
  })

  rule('C4.31', async () => {
    const { client, operator, stack } = suite().roomy
    const visitor = await client.visitor()
    const { conversationId } = visitor.session
    const stream = await visitor.openStream({ after: 0, via: stack.gateways[1]!.url })
    const { body: sent } = await visitor.send('one')
    const { messageId, clientOperationId, sequence } = sent
    for (const state of ['sent', 'delivered', 'delivered', 'read', 'sent'])
      await operator.messaging.updateMessageState({ conversationId, upToSequence: sequence, state })
    await visitor.send('two')
    const messages = () => stream.events.filter(({ type }) => type === 'message.accepted')
    await until('the second message', () => messages().length === 2)
    const changes = stream.events.filter(
      ({ type, data }) => type !== 'message.accepted' && data.messageId === messageId,
    )
    expect(changes.map(({ type, data }) => [type, data])).toEqual(
      ['sent', 'delivered', 'read'].map((state) => ['message.state.changed', { messageId, clientOperationId, state }]),
    )
    const [first] = await visitor.history()
    expect([first.state, first.sequence]).toEqual(['read', sequence])
    const replayed = await visitor.openStream({ after: 0 })
    await until('all of it', () => replayed.events.length >= stream.events.length)
    expect(replayed.events.slice(0, stream.events.length)).toEqual(stream.events)
    stream.close()
    replayed.close()
  })

  rule('C4.33', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    const { conversationId } = visitor.session
    const stream = await visitor.openStream()
    const grace = { displayName: 'Grace' }
    for (const agent of [ada, ada, grace]) await operator.messaging.assignAgent({ conversationId, agent })
    await operator.messaging.unassignAgent({ conversationId })
    await operator.messaging.closeConversation({ conversationId })
    await operator.messaging.closeConversation({ conversationId })
    const reopening = await visitor.send('one more thing')
    expect(reopening.status).toBe(202)
    const seen = () => stream.events.filter(({ type }) => !type.startsWith('message.'))
    await until('the reopening', () => seen().some(({ type }) => type === 'conversation.reopened'))
    expect(seen().map(({ type, data }) => [type, data])).toEqual([
      ['agent.assigned', { agent: ada }],
      ['agent.assigned', { agent: grace }],
      ['agent.unassigned', { agent: grace }],
      ['conversation.closed', {}],
      ['conversation.reopened', {}],
    ])
    stream.close()
  })

  rule(
    'C4.19',
    async () => {
      const { client, operator, stack } = suite().roomy
      const { messaging, commands } = operator
      const document = await loadDocument(stack.gateways[0]!.url)
      const visitor = await client.visitor()
      const { conversationId, sessionId } = visitor.session
      const stream = openRaw(suite().roomy, visitor, '')
      await until('the opening', () => stream.text().includes(': open'))
      for (const state of [TypingState.STARTED, TypingState.STOPPED])
        await messaging.setTyping({ conversationId, state, agent: ada })
      await messaging.assignAgent({ conversationId, agent: ada })
      await messaging.unassignAgent({ conversationId })
      await messaging.closeConversation({ conversationId, requestRating: true })
      await client.call('POST', '/ratings', { headers: bearer(visitor), body: { score: 4, comment: 'Quick' } })
      const { body } = await visitor.send('one')
      await messaging.updateMessageState({ conversationId, upToSequence: body.sequence, state: 'read' })
      const reply = { conversationId, clientOperationId: 'slip', body: 'A slip', agent: ada }
      const { message: slip } = await messaging.sendAgentMessage(reply)
      await messaging.redactMessage({ conversationId, sequence: slip!.sequence, agent: ada })
      const url = `${stack.demo.origin}/`
      const navigation = await commands.requestNavigation({ sessionId, url, label: 'Home' })
      const screenshot = await commands.requestScreenshot({ sessionId, purpose: 'To see it' })
      for (const { command } of [navigation, screenshot])
        await commands.cancelCommand({ commandId: command!.commandId })
      await identify(suite(), visitor, { sub: newSubject() })
      await client.call('DELETE', '/sessions/identify', { headers: bearer(visitor) })
      await stream.ended
      const data = [...stream.text().matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json))
      expect([...new Set(data.map(({ type }) => type))].sort()).toEqual(
        (
          'agent.assigned agent.unassigned conversation.closed conversation.reopened message.accepted ' +
          'message.received message.redacted message.state.changed navigation.cancelled navigation.requested rating.given rating.requested ' +
          'screenshot.cancelled screenshot.requested session.closed session.identified typing.started typing.stopped'
        ).split(' '),
      )
      for (const event of data) expect(document.eventProblems(event)).toEqual([])
      const sequences = data.map(({ sequence }) => sequence)
      expect(sequences).toEqual([...new Set(sequences)].sort((one, other) => one - other))
    },
    'all other event types',
  )

  // This test is last, because the typing expires while the other tests run.
  rule('C3.21', () =>
    inTime(async () => {
      const { seconds, events } = await (untilTypingEnds ?? letTypingEnd())
      untilTypingEnds = undefined
      expect(events.map(({ type }) => type)).toEqual(['typing.started', 'typing.stopped'])
      expect(seconds).toBeGreaterThan(TYPING_SECONDS - 0.1)
      return seconds < TYPING_SECONDS + 3
    }),
  )
}
