import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Operator, operatorOf } from '../support/operator.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
let stack: Stack
let operatorOnA: Operator
let operatorOnB: Operator

beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '1000' } })
  operatorOnA = operatorOf(stack.cores[0]!.url, stack.demo.serviceToken)
  operatorOnB = operatorOf(stack.cores[1]!.url, stack.demo.serviceToken)
})

const newVisitor = (gateway = 0): Promise<Visitor> =>
  startVisitor({ gatewayUrl: stack.gateways[gateway]!.url, origin: stack.demo.origin, siteKey: stack.demo.siteKey })

describe('a visitor on gateway A and core A, and an agent on core B', () => {
  it('exchange messages live, each once and in order on stream and history', async () => {
    const visitor = await newVisitor()
    const stream = await visitor.openStream({ after: 0 })
    const { conversationId } = visitor.session

    const first = await visitor.send('Do you ship to Graz?')
    expect(first.status).toBe(202)
    await operatorOnB.messaging.sendAgentMessage({
      conversationId,
      clientOperationId: 'a1',
      body: 'We do.',
      agent: { displayName: 'Ada' },
    })
    const second = await visitor.send('How long does it take?')
    await operatorOnB.messaging.sendAgentMessage({
      conversationId,
      clientOperationId: 'a2',
      body: 'Two days.',
      agent: { displayName: 'Ada' },
    })

    await until('four events', () => stream.events.length >= 4)
    expect(stream.events.map(({ type }) => type)).toEqual([
      'message.accepted',
      'message.received',
      'message.accepted',
      'message.received',
    ])
    expect(stream.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4])
    const history = await visitor.history()
    expect(stream.events.map(({ data }) => data.message)).toEqual(history)
    for (const answer of [first, second]) {
      const { messageId, clientOperationId, sequence } = answer.body
      expect(history.filter((message) => message.clientOperationId === clientOperationId)).toMatchObject([
        { messageId, sequence },
      ])
    }
    stream.close()
  })

  it('resume on another gateway after a disconnect, without loss or duplicates', async () => {
    const visitor = await newVisitor()
    const { conversationId } = visitor.session
    const before = await visitor.openStream({ after: 0 })
    await visitor.send('one')
    await until('the first event', () => before.events.length === 1)
    before.close()
    for (const body of ['two', 'three']) {
      await operatorOnA.messaging.sendAgentMessage({
        conversationId,
        clientOperationId: body,
        body,
        agent: { displayName: 'Ada' },
      })
    }
    const lastEventId = before.events[0]!.id
    const after = await visitor.openStream({ lastEventId, after: 1, via: stack.gateways[1]!.url })
    await visitor.send('four')
    await until('the rest', () => after.events.length === 3)
    expect(after.events.map(({ data }) => data.message.body)).toEqual(['two', 'three', 'four'])
    after.close()
  })

  it('support three concurrent writers without gaps or duplicates', async () => {
    const visitor = await newVisitor()
    const { conversationId } = visitor.session
    const streams = await Promise.all(stack.gateways.map(({ url }) => visitor.openStream({ after: 0, via: url })))
    const rounds = 40
    const writers = [
      (index: number) => visitor.send(`visitor ${index}`),
      (index: number) =>
        operatorOnA.messaging.sendAgentMessage({
          conversationId,
          clientOperationId: `a-${index}`,
          body: `agent A ${index}`,
        }),
      (index: number) =>
        operatorOnB.messaging.sendAgentMessage({
          conversationId,
          clientOperationId: `b-${index}`,
          body: `agent B ${index}`,
        }),
    ]
    await Promise.all(
      writers.map(async (write) => {
        for (let index = 0; index < rounds; index += 1) await write(index)
      }),
    )
    const expected = Array.from({ length: rounds * 3 }, (_, index) => index + 1)
    for (const stream of streams) {
      await until('every event', () => stream.events.length >= expected.length)
      expect(stream.events.map(({ sequence }) => sequence)).toEqual(expected)
      stream.close()
    }
    const history = await visitor.history()
    expect(history.map(({ sequence }) => sequence)).toEqual(expected)
    expect(new Set(history.map(({ body }) => body)).size).toBe(expected.length)
  })
})

describe('one logical operation', () => {
  it('creates one message when sent 20 times at once through two gateways', async () => {
    const visitor = await newVisitor()
    const clientOperationId = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        visitor.send('once', { clientOperationId, via: stack.gateways[index % 2]!.url }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202))
    const [first] = answers
    for (const { body } of answers) expect(body).toEqual(first?.body)
    expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(19)
    expect(await visitor.history()).toHaveLength(1)
  })

  it('is a conflict if another gateway gets the same key with different input', async () => {
    const visitor = await newVisitor()
    const clientOperationId = randomUUID()
    expect((await visitor.send('this', { clientOperationId })).status).toBe(202)
    const other = await visitor.send('that', { clientOperationId, via: stack.gateways[1]!.url })
    expect(other.status).toBe(409)
    expect(other.body).toMatchObject({ code: 'IdempotencyConflict', retryable: false, terminal: false })
    expect((await visitor.history()).map(({ body }) => body)).toEqual(['this'])
  })

  it('creates one message when an agent repeats it', async () => {
    const { session } = await newVisitor()
    const send = (operator: Operator) =>
      operator.messaging.sendAgentMessage({
        conversationId: session.conversationId,
        clientOperationId: 'same',
        body: 'Hello',
      })
    const answers = await Promise.all([operatorOnA, operatorOnB, operatorOnA, operatorOnB].map(send))
    expect(new Set(answers.map(({ message }) => message?.messageId)).size).toBe(1)
    expect(answers.filter(({ replayed }) => replayed)).toHaveLength(3)
  })
})

describe('the state of a session', () => {
  async function streamsOnBoth(visitor: Visitor) {
    return Promise.all(stack.gateways.map(({ url }) => visitor.openStream({ via: url })))
  }

  it.each([
    [
      'revoked',
      'session.revoked',
      403,
      'SessionRevoked',
      (sessionId: string) => operatorOnB.sessions.revokeSession({ sessionId }),
    ],
    [
      'banned',
      'visitor.banned',
      403,
      'VisitorBanned',
      (sessionId: string) => operatorOnB.sessions.banVisitor({ sessionId, reason: 'spam' }),
    ],
  ])('%s takes effect on every core and ends the session’s streams with %s', async (_, type, status, code, act) => {
    const visitor = await newVisitor()
    const streams = await streamsOnBoth(visitor)
    await act(visitor.session.sessionId)
    for (const stream of streams) {
      await stream.ended
      expect(stream.events.map((event) => event.type)).toEqual([type])
    }
    for (const { url } of stack.gateways) {
      const refused = await visitor.send('still here?', { via: url })
      expect(refused.status).toBe(status)
      expect(refused.body).toMatchObject({ code, terminal: true, retryable: false })
      expect((await visitor.openStream({ via: url })).status).toBe(status)
    }
  })

  it('closed by the visitor takes effect on every core', async () => {
    const visitor = await newVisitor()
    const streams = await streamsOnBoth(visitor)
    const closed = await visitor.call('POST', '/sessions/close', {
      body: { scope: 'continuity' },
      headers: { 'Idempotency-Key': randomUUID() },
    })
    expect(closed.body).toMatchObject({ state: 'closed' })
    for (const stream of streams) {
      await stream.ended
      expect(stream.events.map(({ type }) => type)).toEqual(['session.closed'])
    }
    expect((await visitor.send('hello?', { via: stack.gateways[1]!.url })).body).toMatchObject({
      code: 'SessionClosed',
      terminal: true,
    })
  })

  it('ends when its connection is disabled', async () => {
    const { workspace } = await operatorOnA.workspaces.createWorkspace({ name: 'Another' })
    const { connection } = await operatorOnA.workspaces.createConnection({
      workspaceId: workspace!.workspaceId,
      name: 'Site',
    })
    const { installation } = await operatorOnA.workspaces.createInstallation({
      connectionId: connection!.connectionId,
      origins: ['https://*.another.example'],
    })
    const visitor = await startVisitor({
      gatewayUrl: stack.gateways[0]!.url,
      origin: 'https://www.another.example',
      siteKey: installation!.publicSiteKey,
    })
    const streams = await streamsOnBoth(visitor)
    await operatorOnB.workspaces.setConnectionStatus({ connectionId: connection!.connectionId, status: 2 })
    for (const stream of streams) {
      await stream.ended
      expect(stream.events.map(({ type }) => type)).toEqual(['connection.disabled'])
    }
    expect((await visitor.send('hello?')).body).toMatchObject({ code: 'ConnectionDisabled', terminal: true })
  })
})

describe('the inbox', () => {
  it('lists conversations in pages, latest message first', async () => {
    const visitors = [await newVisitor(), await newVisitor(), await newVisitor()]
    for (const visitor of visitors) await visitor.send('hello')
    const seen = await until('the conversations', async () => {
      const first = await operatorOnA.messaging.listConversations({ limit: 2 })
      const second = await operatorOnA.messaging.listConversations({ limit: 2, pageToken: first.nextPageToken })
      const ids = [...first.conversations, ...second.conversations].map(({ conversationId }) => conversationId)
      return visitors.every(({ session }) => ids.includes(session.conversationId)) ? ids : undefined
    })
    const newestFirst = visitors.map(({ session }) => session.conversationId).reverse()
    expect(seen.slice(0, 3)).toEqual(newestFirst)
  })
})
