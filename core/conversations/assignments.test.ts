import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import type { RunningCore } from '../context.ts'
import { findConversations } from '../log/conversation-store.ts'
import { answer, send, type TestVisitor, testCores } from '../test/cores.ts'
import { assignAgent, assignmentEvents, closeConversation, unassignAgent } from './assignments.ts'
import { listConversations } from './inbox.ts'
import { sendAsAgent } from './messages.ts'
import { reconcileStates } from './state-events.ts'
import { setTypingOfVisitor } from './typing.ts'

const cores = testCores({ count: 2, started: false })

const typesOf = async ({ conversationId }: TestVisitor) => (await cores.log(conversationId)).map(({ type }) => type)
const listed = async (core: RunningCore, { workspaceId, conversationId }: TestVisitor, status?: 'open' | 'closed') => {
  const { conversations } = await listConversations(core, { workspaceId, ...(status && { status }) })
  return conversations.find((conversation) => conversation.conversationId === conversationId)
}

describe('a conversation', () => {
  it('has one closed event after eight concurrent close calls', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    const closings = Array.from({ length: 8 }, (_, index) => cores.cores[index % 2]!)
    const closed = await Promise.all(closings.map((core) => closeConversation(core, visitor.conversationId, undefined)))
    expect(closed.map(({ status }) => status)).toEqual(Array(8).fill('closed'))
    expect(await typesOf(visitor)).toEqual(['message.accepted', 'conversation.closed'])
    expect(await listed(cores.core, visitor, 'closed')).toMatchObject({ status: 'closed' })
    expect(await listed(cores.core, visitor, 'open')).toBeUndefined()
  })

  it.each([
    ['the visitor', send],
    ['the agent', answer],
  ])('is reopened by the next message of %s, and the reopened event precedes the message', async (_, write) => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    await closeConversation(cores.core, visitor.conversationId, undefined)
    const { event } = await write(cores.other, visitor, 'again')
    expect((await typesOf(visitor)).slice(-2)).toEqual(['conversation.reopened', event.type])
    expect(event.sequence).toBe(4)
    expect(await listed(cores.other, visitor, 'open')).toMatchObject({ status: 'open' })
    expect(await listed(cores.other, visitor, 'closed')).toBeUndefined()
  })

  it('has one reopened event, before the first of 20 concurrent messages', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    await send(cores.other, visitor, 'hello2')
    await closeConversation(cores.core, visitor.conversationId, undefined)
    await Promise.all(Array.from({ length: 20 }, (_, index) => send(cores.cores[index % 2]!, visitor, `m${index}`)))
    expect((await typesOf(visitor)).slice(2)).toEqual([
      'conversation.closed',
      'conversation.reopened',
      ...Array(20).fill('message.accepted'),
    ])
  })

  it('is not reopened when an earlier message is repeated', async () => {
    const visitor = await cores.newVisitor()
    const first = await send(cores.core, visitor, 'hello')
    await closeConversation(cores.core, visitor.conversationId, undefined)
    const repeated = await send(cores.other, visitor, 'hello')
    expect(repeated).toMatchObject({ replayed: true, event: { sequence: first.event.sequence } })
    expect(await typesOf(visitor)).toEqual(['message.accepted', 'conversation.closed'])
  })

  itLong('has alternating closed and reopened events under concurrent calls, and no message while closed', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    await Promise.all(
      Array.from({ length: 60 }, (_, index) => {
        const core = cores.cores[index % 2]!
        if (index % 5 === 0) return closeConversation(core, visitor.conversationId, undefined)
        return index % 7 === 0
          ? setTypingOfVisitor(core, visitor.credentials, 'started')
          : send(core, visitor, `m${index}`)
      }),
    )
    let open = true
    for (const type of await typesOf(visitor)) {
      if (type === 'conversation.closed') {
        expect(open).toBe(true)
        open = false
      } else if (type === 'conversation.reopened') {
        expect(open).toBe(false)
        open = true
      } else if (type === 'message.accepted') expect(open).toBe(true)
    }
    await send(cores.core, visitor, 'last')
    expect(await listed(cores.core, visitor)).toMatchObject({ status: 'open' })
  })
})

describe('an assignment', () => {
  const ada = { displayName: 'Ada', avatarUrl: 'https://img.example/ada.png' }
  const bob = { displayName: 'Bob' }

  it('writes an event with the agent for each assignment and each removal, and none for a repeat', async () => {
    const visitor = await cores.newVisitor()
    for (const core of [cores.core, cores.other]) await assignAgent(core, visitor.conversationId, ada, undefined)
    await assignAgent(cores.core, visitor.conversationId, bob, undefined)
    for (const core of [cores.other, cores.core]) await unassignAgent(core, visitor.conversationId, undefined)
    expect((await cores.log(visitor.conversationId)).map(({ type, data }) => [type, data])).toEqual([
      ['agent.assigned', { agent: ada }],
      ['agent.assigned', { agent: bob }],
      ['agent.unassigned', { agent: bob }],
    ])
  })

  it('makes the assigned agent the author of messages that operators send without naming an agent', async () => {
    const visitor = await cores.newVisitor()
    await assignAgent(cores.core, visitor.conversationId, ada, undefined)
    expect((await answer(cores.other, visitor, 'one')).event.message?.author).toEqual({ kind: 'agent', ...ada })
    const named = { conversationId: visitor.conversationId, clientOperationId: 'two', body: 'two', agent: bob }
    expect((await sendAsAgent(cores.other, named)).event.message?.author).toEqual({ kind: 'agent', ...bob })
  })

  itLong('writes events in the order of the stored changes when operators change it concurrently', async () => {
    const visitor = await cores.newVisitor()
    await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        assignAgent(cores.cores[index % 2]!, visitor.conversationId, { displayName: `A${index}` }, undefined),
      ),
    )
    const events = await cores.log(visitor.conversationId)
    expect(events.map(({ operationKey }) => operationKey)).toEqual(events.map((_, index) => `assignment ${index + 1}`))
    const [conversation] = await findConversations(cores.core, [visitor.conversationId])
    expect(events.at(-1)?.data?.agent).toEqual(conversation?.assignment?.agent)
  })

  it('gets its missing event from `reconcile` if the process that stored it died before it appended the event', async () => {
    const visitor = await cores.newVisitor()
    const assignment = { version: 1, agent: ada, announced: false }
    await cores.core.db.conversations.updateOne({ _id: visitor.conversationId }, { $set: { assignment } })
    await Promise.all([reconcileStates(cores.core, assignmentEvents), reconcileStates(cores.other, assignmentEvents)])
    expect(await typesOf(visitor)).toEqual(['agent.assigned'])
    expect(await cores.core.db.conversations.find({ 'assignment.announced': false }).toArray()).toEqual([])
  })

  it('with an empty name or an invalid avatar URL is rejected', async () => {
    const { conversationId } = await cores.newVisitor()
    await expect(
      assignAgent(cores.core, conversationId, { displayName: '', avatarUrl: 'http://x' }, undefined),
    ).rejects.toMatchObject({
      issues: [
        { path: '/agent/displayName', rule: 'minLength' },
        { path: '/agent/avatarUrl', rule: 'format' },
      ],
    })
  })
})
