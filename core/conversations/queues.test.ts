import { createClient } from '@connectrpc/connect'
import { beforeAll, describe, expect, it } from 'vitest'
import { ConversationStatus, MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { logOf } from '../log/event-log.ts'
import { request, say } from '../test/bots.ts'
import { answer, hasFailed, send, type TestVisitor, testCores } from '../test/cores.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { closeConversation, reopenConversation } from './assignments.ts'
import { inboxOf } from './inbox.ts'
import { updateMessageStates } from './message-states.ts'

const cores = testCores({ count: 2, started: false, frozen: true })
let messaging: ReturnType<typeof createClient<typeof MessagingService>>
let options: (workspaceId?: string) => Promise<{ headers: { authorization: string } }>

beforeAll(() => {
  messaging = createClient(MessagingService, transportTo(cores.core))
  options = async (workspaceId) => {
    const token = await accessOf(cores.core).issue({
      subject: 'test',
      scopes: ['messages:read', 'messages:write'],
      ...(workspaceId && { workspaceId }),
    })
    return { headers: { authorization: `Bearer ${token}` } }
  }
})

/** Creates a workspace with several visitors. */
async function newQueue(count: number) {
  const at = await cores.newSite()
  const visitors: TestVisitor[] = []
  for (let index = 0; index < count; index += 1) visitors.push(await cores.newVisitor(at))
  const own = await options(at.workspaceId)
  const list = (request: Parameters<typeof messaging.listConversations>[0]) => messaging.listConversations(request, own)
  const unanswered = async () =>
    (await list({ unanswered: true })).conversations.map(({ conversationId }) => conversationId)
  return { visitors, own, list, unanswered }
}

describe('a closed conversation that is reopened', () => {
  it('keeps its last message in the list, and its visitor still waits', async () => {
    const { visitors, list } = await newQueue(1)
    const { conversationId } = visitors[0]!
    await send(cores.core, visitors[0]!, 'anybody-there')
    const [before] = (await list({})).conversations
    await closeConversation(cores.core, conversationId, undefined)
    expect((await list({ status: ConversationStatus.OPEN })).conversations).toEqual([])
    expect((await list({ unanswered: true })).conversations).toEqual([])
    await reopenConversation(cores.other, conversationId, undefined)
    for (const request of [{}, { status: ConversationStatus.OPEN }, { unanswered: true }])
      expect((await list(request)).conversations).toEqual([before])
    expect((await list({ status: ConversationStatus.CLOSED })).conversations).toEqual([])
    expect(before).toMatchObject({ lastMessage: { body: 'anybody-there' } })
  })
})

it('a conversation that was already reopened is not reopened again', async () => {
  const { visitors } = await newQueue(1)
  const { conversationId } = visitors[0]!
  await send(cores.core, visitors[0]!, 'anybody-there')
  await closeConversation(cores.core, conversationId, undefined)
  await logOf(cores.other).append({ conversationId, type: 'conversation.reopened' })
  await reopenConversation(cores.core, conversationId, undefined)
  const types = (await cores.log(conversationId)).map(({ type }) => type)
  expect(types).toEqual(['message.accepted', 'conversation.closed', 'conversation.reopened'])
})

it('a message whose core died before it listed the message is listed, however long no core runs', async () => {
  const { visitors, unanswered } = await newQueue(2)
  const [ada, bob] = visitors as [TestVisitor, TestVisitor]
  const author = { kind: 'visitor' } as const
  const message = { messageId: 'msg_dead', author, body: 'Hi', contentType: 'text', state: 'queued' } as const
  for (const { conversationId, sessionId } of [ada, bob])
    await logOf(cores.core).append({ conversationId, sessionId, type: 'message.accepted', message })
  await logOf(cores.core).append({ conversationId: bob.conversationId, type: 'conversation.closed' })
  cores.advance(3600)
  await inboxOf(cores.other).reconcile()
  expect(await unanswered()).toEqual([])
  await inboxOf(cores.other).catchUp()
  expect(await unanswered()).toEqual([ada.conversationId])
  await inboxOf(cores.core).catchUp()
})

describe('the queue of unanswered conversations', () => {
  it('is sorted by the first message after the last answer, read or not, on any core', async () => {
    const { visitors, unanswered, list } = await newQueue(3)
    const [ada, bob, eve] = visitors as [TestVisitor, TestVisitor, TestVisitor]
    const steps = [
      () => send(cores.core, ada, 'a1'),
      () => answer(cores.other, ada, 'a2'),
      () => send(cores.other, bob, 'b1'),
      () => send(cores.core, eve, 'e1'),
      () => send(cores.core, ada, 'a3'),
      // Bob writes again and keeps his place.
      () => send(cores.core, bob, 'b2'),
    ]
    for (const step of steps) {
      await step()
      cores.advance(60)
    }
    await updateMessageStates(
      cores.core,
      { conversationId: bob.conversationId, upToSequence: 9, state: 'read' },
      undefined,
    )
    await inboxOf(cores.other).noted()
    expect(await unanswered()).toEqual([bob, eve, ada].map(({ conversationId }) => conversationId))
    const { conversations } = await list({ unanswered: true, limit: 1 })
    const waits = Number(conversations[0]!.lastMessageAt!.seconds - conversations[0]!.waitingSince!.seconds)
    expect(waits).toBeGreaterThan(0)

    await answer(cores.core, bob, 'b3')
    expect(await unanswered()).toEqual([eve, ada].map(({ conversationId }) => conversationId))
    expect((await list({})).conversations[0]).not.toHaveProperty('waitingSince')
  })

  it('is listed in pages without gaps or repeats', async () => {
    const { visitors, list } = await newQueue(5)
    for (const visitor of visitors) await send(cores.core, visitor, 'hello')
    const found: string[] = []
    let pageToken: string | undefined
    do {
      const page = await list({ unanswered: true, limit: 2, pageToken })
      found.push(...page.conversations.map(({ conversationId }) => conversationId))
      pageToken = page.nextPageToken
    } while (pageToken)
    expect(found.sort()).toEqual(visitors.map(({ conversationId }) => conversationId).sort())
  })
})

describe('the counts of the queues', () => {
  it('count open conversations by answer and agent, and equal the lists', async () => {
    const { visitors, list, own } = await newQueue(5)
    for (const visitor of visitors) await send(cores.core, visitor, 'hello')
    const [one, two, three, four] = visitors as TestVisitor[]
    await messaging.assignAgent({ conversationId: one!.conversationId, agent: { displayName: 'Ada' } }, own)
    await messaging.assignAgent({ conversationId: two!.conversationId, agent: { displayName: 'Ada' } }, own)
    await messaging.assignAgent({ conversationId: three!.conversationId, agent: { displayName: 'Jonas' } }, own)
    await messaging.closeConversation({ conversationId: two!.conversationId }, own)
    await answer(cores.core, four!, 'done')
    const { counts } = await list({ countFor: 'Ada', limit: 1 })
    expect(counts).toMatchObject({ unanswered: 3, mine: 1, unassigned: 2, open: 4 })
    const status = ConversationStatus.OPEN
    const lengths = await Promise.all(
      [
        { unanswered: true },
        { status, assignee: { case: 'agentName', value: 'Ada' } as const },
        { status, assignee: { case: 'unassigned', value: true } as const },
        { status },
      ].map(async (request) => (await list(request)).conversations.length),
    )
    expect(lengths).toEqual([3, 1, 2, 4])
    expect((await list({})).counts).toBeUndefined()
  })

  it('need a workspace', async () => {
    const everywhere = messaging.listConversations({ countFor: 'Ada' }, await options())
    await expect(everywhere).rejects.toMatchObject({ rawMessage: 'ValidationFailed' })
  })
})

describe('a conversation that a bot hands over', () => {
  itLong(
    'is unanswered from the request for a person until an agent answers, also if the core dies at any write',
    async () => {
      await cores.untilOneSurvives(
        async (mortal) => {
          const { visitors, unanswered } = await newQueue(1)
          const visitor = visitors[0]!
          await send(cores.core, visitor, 'question')
          await say(cores.core, visitor, 'bot-answer')
          expect(await unanswered()).toEqual([])
          const died = await hasFailed(request(mortal, visitor))
          if (died) await request(cores.core, visitor)
          expect(await unanswered()).toEqual([visitor.conversationId])
          await answer(cores.core, visitor, 'agent-answer')
          expect(await unanswered()).toEqual([])
          return died
        },
        { every: 1 },
      )
    },
  )
})
