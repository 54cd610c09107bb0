import { randomUUID } from 'node:crypto'
import { Code, ConnectError } from '@connectrpc/connect'
import { beforeAll, describe, expect, it } from 'vitest'
import { TypingState, type WatchConversationsResponse } from '#proto/messaging/v1/messaging_pb.js'
import { type Operator, operatorOf } from '../support/operator.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
let stack: Stack
let onA: Operator
let onB: Operator

beforeAll(async () => {
  stack = await startStack({
    database,
    cores: 2,
    gateways: 2,
    env: { RATE_LIMIT_FACTOR: '1000', TYPING_SECONDS: '1', HEARTBEAT_SECONDS: '1', INBOX_QUEUE_MAX: '50' },
  })
  onA = operatorOf(stack.cores[0]!.url, stack.demo.serviceToken)
  onB = operatorOf(stack.cores[1]!.url, stack.demo.serviceToken)
})

const newVisitor = (): Promise<Visitor> =>
  startVisitor({ gatewayUrl: stack.gateways[0]!.url, origin: stack.demo.origin, siteKey: stack.demo.siteKey })

const ada = { displayName: 'Ada' }

/** An operator's open inbox and all its frames. */
function watchInbox({ messaging }: Operator, workspaceId?: string) {
  const abort = new AbortController()
  const frames: WatchConversationsResponse['frame'][] = []
  const ended = (async () => {
    const request = workspaceId === undefined ? {} : { workspaceId }
    for await (const { frame } of messaging.watchConversations(request, { signal: abort.signal })) frames.push(frame)
    return 'ended'
  })().catch((error) => ConnectError.from(error).code)
  return {
    frames,
    ended,
    close: () => abort.abort(),
    ready: () => until('the inbox', () => frames.some(({ case: kind }) => kind === 'ready')),
    /** Events of a conversation, in order, without repeats. */
    eventsOf(conversationId: string) {
      const events = frames.flatMap((frame) =>
        frame.case === 'changed' && frame.value.conversation?.conversationId === conversationId
          ? frame.value.events
          : [],
      )
      return events.filter(({ sequence }, index) => events.findIndex((event) => event.sequence === sequence) === index)
    },
    latest: (conversationId: string) =>
      frames
        .flatMap(({ case: kind, value }) => (kind === 'changed' ? [value.conversation!] : []))
        .findLast((conversation) => conversation.conversationId === conversationId),
  }
}

describe('an inbox watched on another core', () => {
  it('gets messages, typing, assignment, closing and reopening live, and the visitor’s messages become sent', async () => {
    const inbox = watchInbox(onB, stack.demo.workspaceId)
    await inbox.ready()
    const visitor = await newVisitor()
    const stream = await visitor.openStream({ after: 0 })
    const { conversationId } = visitor.session
    expect((await visitor.call('POST', '/typing', { body: { state: 'started' } })).status).toBe(204)
    await visitor.send('Hello?')
    await onA.messaging.assignAgent({ conversationId, agent: ada })
    await onA.messaging.closeConversation({ conversationId })
    await visitor.send('One more thing')
    const types = () => inbox.eventsOf(conversationId).map(({ type }) => type)
    await until('the second sent', () => types().filter((type) => type === 'message.state.changed').length === 2)
    expect(types().filter((type) => type !== 'message.state.changed')).toEqual(
      expect.arrayContaining([
        'typing.started',
        'message.accepted',
        'typing.stopped',
        'agent.assigned',
        'conversation.closed',
        'conversation.reopened',
      ]),
    )
    const sequences = inbox.eventsOf(conversationId).map(({ sequence }) => sequence)
    expect(sequences).toEqual([...sequences].sort((one, other) => one - other))
    expect(inbox.latest(conversationId)).toMatchObject({ agent: { displayName: 'Ada' }, status: 1 })
    const changes = () => stream.events.filter(({ type }) => type === 'message.state.changed')
    await until('both sent', () => changes().length === 2)
    expect(changes().map(({ data }) => data.state)).toEqual(['sent', 'sent'])
    expect((await visitor.history()).map(({ state }) => state)).toEqual(['sent', 'sent'])
    expect(stream.events.some(({ type }) => type.startsWith('typing'))).toBe(false)
    await until('a heartbeat', () => inbox.frames.some(({ case: kind }) => kind === 'heartbeat'))
    stream.close()
    inbox.close()
  })

  it('gets no events of another workspace', async () => {
    const { workspace } = await onA.workspaces.createWorkspace({ name: 'Another' })
    const inbox = watchInbox(onB, workspace!.workspaceId)
    const all = watchInbox(onB)
    await Promise.all([inbox.ready(), all.ready()])
    const visitor = await newVisitor()
    await visitor.send('Hello?')
    await until('the message', () => all.eventsOf(visitor.session.conversationId).length > 0)
    expect(inbox.eventsOf(visitor.session.conversationId)).toEqual([])
    inbox.close()
    all.close()
  })

  it('ends cleanly when its core stops, and reopens on another', async () => {
    const inbox = watchInbox(onB)
    await inbox.ready()
    await stack.cores[1]!.process().stop()
    expect(['ended', Code.Unavailable, Code.Canceled, Code.Aborted]).toContain(await inbox.ended)
    const again = watchInbox(onA)
    await again.ready()
    await stack.cores[1]!.start()
    again.close()
  })
})

describe('an agent’s typing', () => {
  it('reaches the visitor on another core, expires with one event and is not replayed', async () => {
    const visitor = await newVisitor()
    const { conversationId } = visitor.session
    const live = await visitor.openStream({ via: stack.gateways[1]!.url })
    await onA.messaging.setTyping({ conversationId, state: TypingState.STARTED, agent: ada })
    await until('the end', () => live.events.some(({ type }) => type === 'typing.stopped'))
    await onA.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'Hi', agent: ada })
    await until('the message', () => live.events.length === 3)
    expect(live.events.map(({ type, sequence }) => [type, sequence])).toEqual([
      ['typing.started', 1],
      ['typing.stopped', 2],
      ['message.received', 3],
    ])
    expect(live.events[0]!.data).toEqual({ author: { kind: 'agent', displayName: 'Ada' } })
    const later = await visitor.openStream({ after: 0 })
    await until('the message', () => later.events.length > 0)
    expect(later.events.map(({ id }) => id)).toEqual([live.events[2]!.id])
    live.close()
    later.close()
  })

  it('is ended once by another core if its core is killed', async () => {
    const visitor = await newVisitor()
    const { conversationId } = visitor.session
    const live = await visitor.openStream({ via: stack.gateways[1]!.url })
    await onA.messaging.setTyping({ conversationId, state: TypingState.STARTED, agent: ada })
    await stack.cores[0]!.kill()
    await until('the end', () => live.events.some(({ type }) => type === 'typing.stopped'))
    await stack.cores[0]!.start()
    await onB.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'Hi', agent: ada })
    await until('the message', () => live.events.some(({ type }) => type === 'message.received'))
    expect(live.events.map(({ type }) => type)).toEqual(['typing.started', 'typing.stopped', 'message.received'])
    live.close()
  })

  it.each([[{ state: 'thinking' }], [{}], [{ state: 'started', for: 'ever' }]])('as %j is rejected', async (body) => {
    const visitor = await newVisitor()
    const answer = await visitor.call('POST', '/typing', { body })
    expect([answer.status, answer.body.code]).toEqual([400, 'ValidationFailed'])
  })
})

describe('routes that an installation may advertise', () => {
  const keyed = () => ({ 'Idempotency-Key': randomUUID() })

  async function visitorOf(settings: object): Promise<Visitor> {
    const { connection } = await onA.workspaces.createConnection({ workspaceId: stack.demo.workspaceId, name: 'Site' })
    const { installation } = await onA.workspaces.createInstallation({
      connectionId: connection!.connectionId,
      origins: [stack.demo.origin],
      ...settings,
    })
    return startVisitor({
      gatewayUrl: stack.gateways[0]!.url,
      origin: stack.demo.origin,
      siteKey: installation!.publicSiteKey,
    })
  }

  it('answer 404 unless advertised, for any body', async () => {
    const visitor = await newVisitor()
    for (const path of ['/forms/pre-chat', '/forms/offline', '/messages/op-1/retry']) {
      for (const body of [{ fields: {} }, { nonsense: true }]) {
        const answer = await visitor.call('POST', path, { body, headers: keyed() })
        expect([path, answer.status, answer.body.code]).toEqual([path, 404, 'RouteNotAdvertised'])
      }
    }
  })

  it('a form is in the config, is idempotent and validates its fields', async () => {
    const fields = [{ name: 'mail', label: 'Mail', type: 'email', required: true }]
    const visitor = await visitorOf({
      capabilities: { offlineForm: true },
      forms: { offline: { fields }, preChat: { fields } },
    })
    const { body: config } = await visitor.call('GET', `/config/${(await siteKeyOf(visitor))!}`)
    expect(config.forms).toEqual({ offline: { fields: [{ ...fields[0], maxLength: 254 }] } })
    const headers = keyed()
    const body = { fields: { mail: 'mia@example.org' } }
    const first = await visitor.call('POST', '/forms/offline', { body, headers })
    const again = await visitor.call('POST', '/forms/offline', { body, headers, via: stack.gateways[1]!.url })
    expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([202, 202, 'true'])
    expect(again.body).toEqual(first.body)
    expect(Object.keys(first.body)).toEqual(['formSubmissionId'])
    const other = await visitor.call('POST', '/forms/offline', { body: { fields: { mail: 'x@y.zz' } }, headers })
    expect([other.status, other.body.code]).toEqual([409, 'IdempotencyConflict'])
    const wrong = await visitor.call('POST', '/forms/offline', { body: { fields: { name: 'Mia' } }, headers: keyed() })
    expect([wrong.status, wrong.body.issues]).toEqual([
      400,
      [
        { path: '/fields/name', rule: 'additionalProperties' },
        { path: '/fields/mail', rule: 'required' },
      ],
    ])
    const pre = await visitor.call('POST', '/forms/pre-chat', { body, headers: keyed() })
    expect(pre.body.code).toBe('RouteNotAdvertised')
  })

  it('a retried message keeps its id', async () => {
    const visitor = await visitorOf({ capabilities: { messageRetryRoute: true } })
    const clientOperationId = randomUUID()
    const first = await visitor.send('once', { clientOperationId })
    const retry = (id: string, operation: string) =>
      visitor.call('POST', `/messages/${id}/retry`, {
        body: { clientOperationId: operation, body: 'once', contentType: 'text' },
        headers: { 'Idempotency-Key': operation },
      })
    const again = await retry(clientOperationId, clientOperationId)
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([202, 'true'])
    expect(again.body).toEqual(first.body)
    expect((await retry('other', clientOperationId)).body.issues).toEqual([
      { path: '/clientOperationId', rule: 'const' },
    ])
    expect(await visitor.history()).toHaveLength(1)
  })

  async function siteKeyOf(visitor: Visitor) {
    const { session } = await onA.sessions.getSession({ sessionId: visitor.session.sessionId })
    return session?.publicSiteKey
  }
})
