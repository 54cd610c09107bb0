import { Code } from '@connectrpc/connect'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { useLocalStack } from '../support/local-stack.ts'
import type { Operator } from '../support/operator.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { watchInbox } from './watch-inbox.ts'

let onA: Operator
let onB: Operator

const stack = useLocalStack({
  cores: 2,
  gateways: 2,
  env: { RATE_LIMIT_FACTOR: '1000', TYPING_SECONDS: '1', HEARTBEAT_SECONDS: '1', INBOX_QUEUE_MAX: '50' },
})
beforeAll(async () => {
  onA = stack.operator()
  onB = stack.operator(1)
})

const newVisitor = (): Promise<Visitor> => stack.newVisitor()

const ada = { displayName: 'Ada' }

describe('the presence of a visitor', () => {
  it('cannot be reported with an invalid tab or state, or after the session is revoked', async () => {
    const visitor = await newVisitor()
    const body = { tab: 'a', state: 'here' }
    for (const invalid of [{}, { ...body, tab: '' }, { ...body, tab: 'a b' }, { ...body, state: 'gone' }])
      expect((await visitor.call('POST', '/presence', { body: invalid })).body.code).toBe('ValidationFailed')
    await onA.sessions.revokeSession({ sessionId: visitor.session.sessionId })
    await until('the refusal', async () => {
      const { body: answer } = await visitor.call('POST', '/presence', { body })
      return answer?.code === 'SessionRevoked'
    })
  })
})

describe('an operator’s inbox stream from another core', () => {
  it('gets messages, typing, assignment, closing and reopening live, and the state `sent` of the visitor’s messages', async () => {
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
    await until('the end of typing', () => types().includes('typing.stopped'))
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
    stream.close()
    inbox.close()
  })

  it('gets a heartbeat after 15 s without frames', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const inbox = watchInbox(onB, stack.demo.workspaceId)
    await inbox.ready()
    const heartbeats = () => inbox.frames.filter(({ case: kind }) => kind === 'heartbeat').length
    vi.advanceTimersByTime(14_900)
    await onB.messaging.listConversations({})
    expect(heartbeats()).toBe(0)
    vi.advanceTimersByTime(200)
    await until('the heartbeat', () => heartbeats() === 1)
    inbox.close()
  })

  it('says that a conversation has a note', async () => {
    const inbox = watchInbox(onB, stack.demo.workspaceId)
    await inbox.ready()
    const { conversationId } = (await newVisitor()).session
    await onA.messaging.addNote({ conversationId, clientOperationId: 'note', body: 'Calls on Monday', agent: ada })
    await until('the note', () =>
      inbox.frames.some(({ case: kind, value }) => kind === 'notes' && value.conversationId === conversationId),
    )
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

  it('ends when its core stops, and can be reopened on another core', async () => {
    const inbox = watchInbox(onB)
    await inbox.ready()
    await stack.cores[1]!.stop()
    expect(['ended', Code.Unavailable, Code.Canceled, Code.Aborted]).toContain(await inbox.ended)
    const again = watchInbox(onA)
    await again.ready()
    await stack.cores[1]!.start()
    again.close()
  })
})
