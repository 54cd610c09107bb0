import { createClient } from '@connectrpc/connect'
import { beforeAll, describe, expect, it } from 'vitest'
import { ConversationStatus, MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { createBus } from '../bus.ts'
import { feedReaderOf } from '../feed/feed-reader.ts'
import { hideFromAll } from '../privacy/data-store.ts'
import { encodeFor, toStreamEvent } from '../streams/model.ts'
import { bareCore } from '../test/core-with.ts'
import { hasFailed, send, type TestVisitor, testCores } from '../test/cores.ts'
import { flushFeed } from '../test/feed.ts'
import { openMeasuredClient } from '../test/query-cost.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { assignAgent, closeConversation } from './assignments.ts'
import { findConversation } from './conversation-access.ts'
import { inboxOf, listConversations } from './inbox.ts'
import { listMessagesForVisitor } from './messages.ts'
import { reconcileStates } from './state-events.ts'
import { addTag, latestTags, removeTag, tagEvents } from './tags.ts'

const cores = testCores({ count: 2, started: false })
let clients: ReturnType<typeof createClient<typeof MessagingService>>[]

beforeAll(() => {
  clients = cores.cores.map((core) => createClient(MessagingService, transportTo(core)))
})

const optionsFor = async (workspaceId: string, scopes = ['messages:read', 'messages:write']) => ({
  headers: { authorization: `Bearer ${await accessOf(cores.core).issue({ subject: 'test', scopes, workspaceId })}` },
})
const tagsOf = async ({ conversationId }: TestVisitor) =>
  (await findConversation(cores.core, conversationId, undefined)).tags?.names ?? []
const changesIn = async ({ conversationId }: TestVisitor) =>
  (await cores.log(conversationId)).flatMap(({ type, data }) => (data?.tag ? [`${type} ${data.tag}`] : []))

/** Creates a visitor who has written, in a workspace of their own. */
async function newWriter(at?: Awaited<ReturnType<typeof cores.newSite>>) {
  const visitor = await cores.newVisitor(at ?? (await cores.newSite()))
  await send(cores.core, visitor, 'hello')
  return visitor
}

describe('a tag', () => {
  it('is stored without case and superfluous spaces, and has one event for each change', async () => {
    const visitor = await newWriter()
    const { conversationId } = visitor
    const own = await optionsFor(visitor.workspaceId)
    for (const tag of ['VIP', '  vip ', 'Refund\u00a0  due', 'CAFE\u0301'])
      for (const client of clients) await client.addTag({ conversationId, tag }, own)
    expect(await tagsOf(visitor)).toEqual(['vip', 'refund due', 'caf\u00e9'])
    const removed = await clients[1]!.removeTag({ conversationId, tag: 'Vip' }, own)
    expect(removed.conversation!.tags).toEqual(['refund due', 'caf\u00e9'])
    await clients[0]!.removeTag({ conversationId, tag: 'vip' }, own)
    expect(await changesIn(visitor)).toEqual([
      'conversation.tagged vip',
      'conversation.tagged refund due',
      'conversation.tagged caf\u00e9',
      'conversation.untagged vip',
    ])
  })

  itLong('of two operators at two cores at once is kept, and the log has one event for each', async () => {
    const visitor = await newWriter()
    await addTag(cores.core, visitor.conversationId, 'old', undefined)
    await Promise.all([
      ...Array.from({ length: 8 }, (_, at) =>
        addTag(cores.cores[at % 2]!, visitor.conversationId, `t${at}`, undefined),
      ),
      ...cores.cores.map((core) => removeTag(core, visitor.conversationId, 'old', undefined)),
      ...cores.cores.map((core) => addTag(core, visitor.conversationId, 't0', undefined)),
    ])
    expect((await tagsOf(visitor)).toSorted()).toEqual(Array.from({ length: 8 }, (_, at) => `t${at}`))
    expect((await changesIn(visitor)).toSorted().slice(-2)).toEqual([
      'conversation.tagged t7',
      'conversation.untagged old',
    ])
    expect(await changesIn(visitor)).toHaveLength(10)
  })

  it('is refused if it is empty, too long or has control characters, or if the conversation has ten', async () => {
    const visitor = await newWriter()
    const own = await optionsFor(visitor.workspaceId)
    const add = (tag: string) => clients[0]!.addTag({ conversationId: visitor.conversationId, tag }, own)
    for (const tag of ['', '   ', 'x'.repeat(41), 'a\u0000b', 'a\u009bb', '\ud800', 'a\tb', 'a\nb', 'a\n'])
      await expect(add(tag)).rejects.toMatchObject({ rawMessage: 'ValidationFailed' })
    for (let at = 0; at < 10; at += 1) await add(`${at}`)
    await expect(add('eleventh')).rejects.toMatchObject({ rawMessage: 'ValidationFailed' })
    await add('9')
    expect(await tagsOf(visitor)).toHaveLength(10)
    // Two operators take the last place.
    await removeTag(cores.core, visitor.conversationId, '9', undefined)
    const taken = await Promise.all(
      ['a', 'b'].map((tag, at) => hasFailed(addTag(cores.cores[at]!, visitor.conversationId, tag, undefined))),
    )
    expect(taken.toSorted()).toEqual([false, true])
    expect(await tagsOf(visitor)).toHaveLength(10)
  })

  it('is on no stream of the visitor, but in the feed and in the list of events', async () => {
    const visitor = await newWriter()
    const { conversationId, workspaceId } = visitor
    await addTag(cores.core, conversationId, 'rude', undefined)
    await removeTag(cores.core, conversationId, 'rude', undefined)
    const events = await cores.log(conversationId)
    const encoded = events.filter(({ data }) => data?.tag).map((event) => encodeFor(toStreamEvent(event), 'e').json)
    expect(encoded).toEqual(['', ''])
    expect(JSON.stringify(await listMessagesForVisitor(cores.core, visitor.credentials, {}))).not.toContain('rude')
    const listed = await clients[1]!.listConversationEvents({ conversationId }, await optionsFor(workspaceId))
    expect(listed.events.map(({ type, tag }) => [type, tag])).toEqual([
      ['conversation.tagged', 'rude'],
      ['conversation.untagged', 'rude'],
    ])
    await flushFeed(cores.core)
    const { events: fed } = await feedReaderOf(cores.other).read(
      { workspaceId, cursor: '', types: ['conversation.tagged'] },
      { waitMs: 0, signal: AbortSignal.timeout(60_000) },
    )
    expect(fed.map(({ event }) => event?.data?.tag)).toEqual(['rude'])
  })

  it('has one event, also if the core dies at any write', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const visitor = await newWriter()
      const died = await hasFailed(addTag(mortal, visitor.conversationId, 'vip', undefined))
      if (died) {
        await Promise.all(cores.cores.map((core) => reconcileStates(core, tagEvents)))
        await addTag(cores.core, visitor.conversationId, 'VIP', undefined)
      }
      expect(await tagsOf(visitor)).toEqual(['vip'])
      expect(await changesIn(visitor)).toEqual(['conversation.tagged vip'])
      expect(await cores.core.db.conversations.find({ 'tags.announced': false }).toArray()).toEqual([])
      return died
    })
  })
})

describe('the filter by tag', () => {
  it('works with the filters of queues, in pages, on both cores', async () => {
    const at = await cores.newSite()
    const visitors: TestVisitor[] = []
    for (let count = 0; count < 5; count += 1) visitors.push(await newWriter(at))
    const own = await optionsFor(at.workspaceId)
    for (const { conversationId } of visitors.slice(0, 4)) await addTag(cores.core, conversationId, 'vip', undefined)
    await removeTag(cores.core, visitors[3]!.conversationId, 'vip', undefined)
    await closeConversation(cores.core, visitors[0]!.conversationId, undefined)
    await assignAgent(cores.core, visitors[1]!.conversationId, { displayName: 'Ada' }, undefined)
    await inboxOf(cores.core).noted()
    const list = async (request: Parameters<(typeof clients)[0]['listConversations']>[0], client = clients[0]!) =>
      (await client.listConversations({ tag: ' VIP', ...request }, own)).conversations.map(({ conversationId }) =>
        visitors.findIndex((one) => one.conversationId === conversationId),
      )
    const { OPEN, CLOSED } = ConversationStatus
    expect(await list({}, clients[1])).toEqual([2, 1, 0])
    expect(await list({ status: OPEN })).toEqual([2, 1])
    expect(await list({ status: CLOSED })).toEqual([0])
    expect(await list({ unanswered: true })).toEqual([1, 2])
    expect(await list({ status: OPEN, assignee: { case: 'agentName', value: 'Ada' } })).toEqual([1])
    expect(await list({ status: OPEN, assignee: { case: 'unassigned', value: true } })).toEqual([2])
    expect(await list({ tag: 'none' })).toEqual([])
    await expect(list({ tag: '' })).rejects.toMatchObject({ rawMessage: 'ValidationFailed' })
    const first = await clients[0]!.listConversations({ tag: 'vip', limit: 2 }, own)
    const second = await clients[1]!.listConversations({ tag: 'vip', limit: 2, pageToken: first.nextPageToken! }, own)
    expect([first.conversations.length, second.conversations.length, second.nextPageToken]).toEqual([2, 1, undefined])
    expect(first.conversations[0]!.tags).toEqual(['vip'])
  })

  it('reads only tagged conversations', async () => {
    const at = await cores.newSite()
    for (let count = 0; count < 8; count += 1) {
      const { conversationId } = await newWriter(at)
      await addTag(cores.core, conversationId, count < 2 ? 'vip' : 'other', undefined)
    }
    await inboxOf(cores.core).noted()
    const measured = await openMeasuredClient(cores.uri, cores.name)
    const conversations = measured.db.collection('conversations') as never
    const costOf = async (run: () => Promise<unknown>) => {
      const cost = { calls: 0, keys: 0, documents: 0 }
      await measured.add(cost, (await measured.commandsOf(run)).sent)
      return cost.documents
    }
    const { history, logger, now } = cores.core
    const core = bareCore({ db: { conversations }, bus: createBus(), history, logger, now })
    expect(await costOf(() => listConversations(core, { ...at, tag: 'vip', limit: 50 }))).toBe(2)
    expect(await costOf(() => latestTags(core, at.workspaceId, 3))).toBe(3)
    await measured.close()
  })
})

it('the list of tags begins with the most used tag, and omits tags of removed conversations', async () => {
  const at = await cores.newSite()
  const [one, two] = [await newWriter(at), await newWriter(at)]
  for (const { conversationId } of [one, two]) await addTag(cores.core, conversationId, 'vip', undefined)
  await addTag(cores.core, two.conversationId, 'john doe', undefined)
  const own = await optionsFor(at.workspaceId)
  expect((await clients[1]!.listTags({}, own)).tags).toEqual(['vip', 'john doe'])
  await hideFromAll(cores.core, { conversationIds: [two.conversationId], leadIds: [] })
  expect((await clients[0]!.listTags({}, own)).tags).toEqual(['vip'])
})
