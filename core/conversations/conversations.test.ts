import { beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { CoreContext } from '../context.ts'
import { answer, send, type TestVisitor, testCores } from '../test-cores.ts'

const cores = testCores(2)
let a: CoreContext
let b: CoreContext
beforeAll(async () => {
  const opened = await cores.open()
  a = opened[0]!
  b = opened[1]!
})

const typesOf = async ({ conversationId }: TestVisitor) => (await cores.log(conversationId)).map(({ type }) => type)
const listed = async (core: CoreContext, { workspaceId, conversationId }: TestVisitor, status?: 'open' | 'closed') => {
  const { conversations } = await core.inbox.list({ workspaceId, ...(status && { status }) })
  return conversations.find((conversation) => conversation.conversationId === conversationId)
}

describe('a conversation', () => {
  it('is closed once under concurrent and repeated closings', async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'hello')
    const closings = Array.from({ length: 8 }, (_, index) => [a, b][index % 2]!)
    const closed = await Promise.all(
      closings.map(({ assignments }) => assignments.close(visitor.conversationId, undefined)),
    )
    expect(closed.map(({ status }) => status)).toEqual(Array(8).fill('closed'))
    expect(await typesOf(visitor)).toEqual(['message.accepted', 'conversation.closed'])
    expect(await listed(a, visitor, 'closed')).toMatchObject({ status: 'closed' })
    expect(await listed(a, visitor, 'open')).toBeUndefined()
  })

  it.each([
    ['the visitor', send],
    ['the agent', answer],
  ])('is reopened by the next message of %s, with the event before the message', async (_, write) => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'hello')
    await a.assignments.close(visitor.conversationId, undefined)
    const { event } = await write(b, visitor, 'again')
    expect((await typesOf(visitor)).slice(-2)).toEqual(['conversation.reopened', event.type])
    expect(event.sequence).toBe(4)
    expect(await listed(b, visitor, 'open')).toMatchObject({ status: 'open' })
    expect(await listed(b, visitor, 'closed')).toBeUndefined()
  })

  it('is reopened once under concurrent messages, before the first of them', async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'hello')
    await send(b, visitor, 'hello2')
    await a.assignments.close(visitor.conversationId, undefined)
    await Promise.all(Array.from({ length: 20 }, (_, index) => send([a, b][index % 2]!, visitor, `m${index}`)))
    expect((await typesOf(visitor)).slice(2)).toEqual([
      'conversation.closed',
      'conversation.reopened',
      ...Array(20).fill('message.accepted'),
    ])
  })

  it('is not reopened by the repeat of an earlier message', async () => {
    const visitor = await cores.newVisitor()
    const first = await send(a, visitor, 'hello')
    await a.assignments.close(visitor.conversationId, undefined)
    const repeated = await send(b, visitor, 'hello')
    expect(repeated).toMatchObject({ replayed: true, event: { sequence: first.event.sequence } })
    expect(await typesOf(visitor)).toEqual(['message.accepted', 'conversation.closed'])
  })

  it('alternates closings and reopenings under concurrent calls, without messages while closed', async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'hello')
    await Promise.all(
      Array.from({ length: 60 }, (_, index) => {
        const core = [a, b][index % 2]!
        if (index % 5 === 0) return core.assignments.close(visitor.conversationId, undefined)
        return index % 7 === 0
          ? core.typing.setByVisitor(visitor.credentials, 'started')
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
    await send(a, visitor, 'last')
    expect(await listed(a, visitor)).toMatchObject({ status: 'open' })
  })

  it('of another workspace is not found', async () => {
    const { conversationId } = await cores.newVisitor()
    const notFound = { code: ErrorCode.NOT_FOUND }
    await expect(a.assignments.close(conversationId, 'ws_other')).rejects.toMatchObject(notFound)
    await expect(a.assignments.unassign(conversationId, 'ws_other')).rejects.toMatchObject(notFound)
    const ada = { displayName: 'Ada' }
    await expect(a.assignments.assign(conversationId, ada, 'ws_other')).rejects.toMatchObject(notFound)
    await expect(a.assignments.assign('cnv_none', ada, undefined)).rejects.toMatchObject(notFound)
  })
})

describe('an assignment', () => {
  const ada = { displayName: 'Ada', avatarUrl: 'https://img.example/ada.png' }
  const bob = { displayName: 'Bob' }

  it('is one event with the agent; repeating it adds none, and unassigning names the agent', async () => {
    const visitor = await cores.newVisitor()
    for (const core of [a, b]) await core.assignments.assign(visitor.conversationId, ada, undefined)
    await a.assignments.assign(visitor.conversationId, bob, undefined)
    for (const core of [b, a]) await core.assignments.unassign(visitor.conversationId, undefined)
    expect((await cores.log(visitor.conversationId)).map(({ type, data }) => [type, data])).toEqual([
      ['agent.assigned', { agent: ada }],
      ['agent.assigned', { agent: bob }],
      ['agent.unassigned', { agent: bob }],
    ])
  })

  it('is the author of agent messages that name no agent', async () => {
    const visitor = await cores.newVisitor()
    await a.assignments.assign(visitor.conversationId, ada, undefined)
    expect((await answer(b, visitor, 'one')).event.message?.author).toEqual({ kind: 'agent', ...ada })
    const named = { conversationId: visitor.conversationId, clientOperationId: 'two', body: 'two', agent: bob }
    expect((await b.messages.sendAsAgent(named)).event.message?.author).toEqual({ kind: 'agent', ...bob })
  })

  it('has its events in the order of the changes under concurrent changes', async () => {
    const visitor = await cores.newVisitor()
    await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        [a, b][index % 2]!.assignments.assign(visitor.conversationId, { displayName: `A${index}` }, undefined),
      ),
    )
    const events = await cores.log(visitor.conversationId)
    expect(events.map(({ operationKey }) => operationKey)).toEqual(events.map((_, index) => `assignment ${index + 1}`))
    const [conversation] = await a.stores.conversations.find([visitor.conversationId])
    expect(events.at(-1)?.data?.agent).toEqual(conversation?.assignment?.agent)
  })

  it('whose event a dead process did not write gets it by reconciliation', async () => {
    const visitor = await cores.newVisitor()
    await a.stores.conversations.assign(visitor.conversationId, undefined, { version: 1, agent: ada, announced: false })
    await Promise.all([a.assignments.reconcile(), b.assignments.reconcile()])
    expect(await typesOf(visitor)).toEqual(['agent.assigned'])
    expect(await a.stores.conversations.unannounced(10)).toEqual([])
  })

  it('with an empty name or an invalid avatar URL is rejected', async () => {
    const { conversationId } = await cores.newVisitor()
    await expect(
      a.assignments.assign(conversationId, { displayName: '', avatarUrl: 'http://x' }, undefined),
    ).rejects.toMatchObject({
      issues: [
        { path: '/agent/displayName', rule: 'minLength' },
        { path: '/agent/avatarUrl', rule: 'format' },
      ],
    })
  })
})
