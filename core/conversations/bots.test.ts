import { createClient } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import { type Event, EventsService } from '#proto/events/v1/events_pb.js'
import { until } from '../../test/support/until.ts'
import type { CoreContext } from '../context.ts'
import { inMemoryTransport } from '../server.ts'
import { answer, codeOf, send, type TestVisitor, testCores } from '../test/cores.ts'

const cores = testCores({ count: 2, started: false })
const bot = { displayName: 'Robo', avatarUrl: 'https://shop.example/robo.png' }

const say = (core: CoreContext, { conversationId }: TestVisitor, clientOperationId: string, more = {}) =>
  core.bots.send(
    { conversationId, clientOperationId, body: clientOperationId, bot, quickReplies: [], ...more },
    undefined,
  )

const request = (
  core: CoreContext,
  { conversationId }: TestVisitor,
  clientOperationId = 'help',
  summary = 'Wants Ada.',
) => core.bots.requestHuman({ conversationId, clientOperationId, bot, summary }, undefined)

const typesOf = async ({ conversationId }: TestVisitor) => (await cores.log(conversationId)).map(({ type }) => type)
const stored = async ({ conversationId }: TestVisitor) =>
  (await cores.core.stores.conversations.find([conversationId]))[0]!

/** Returns the clients of a bot, with the headers of its token. */
async function botOf({ workspaceId }: TestVisitor) {
  const token = await cores.core.access.issue({ subject: 'robo', scopes: ['bots:act'], workspaceId })
  const transport = inMemoryTransport(cores.core)
  const headers = { authorization: `Bearer ${token}` }
  return { headers, bots: createClient(BotService, transport), events: createClient(EventsService, transport) }
}

describe('a message of a bot', () => {
  it('has the author, the picture and the quick replies, in history and streams', async () => {
    const visitor = await cores.newVisitor()
    const stream = await cores.openStream(visitor)
    await send(cores.core, visitor, 'hello')
    const { bots, headers } = await botOf(visitor)
    const { conversationId } = visitor
    const quickReplies = ['Prices', 'Opening hours']
    const call = { conversationId, clientOperationId: 'one', body: 'What is it about?', bot, quickReplies }
    const { message } = await bots.sendBotMessage(call, { headers })
    expect(message).toMatchObject({ author: { kind: 'bot', ...bot }, body: call.body, quickReplies })
    await until('the event', () => stream.json.length === 2)
    expect(JSON.parse(stream.json[1]!).data.message).toMatchObject({ author: { kind: 'bot', ...bot }, quickReplies })
    const { messages } = await cores.core.messages.listForVisitor(visitor.credentials, {})
    expect(messages[1]?.message).toMatchObject({ author: { kind: 'bot', ...bot }, quickReplies })
  })

  it('is stored once for one operation, also if its repeats are concurrent and at other cores', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    const sent = await Promise.all(
      Array.from({ length: 12 }, (_, index) => say(cores.cores[index % 2]!, visitor, 'one')),
    )
    expect(new Set(sent.map(({ event }) => event.sequence)).size).toBe(1)
    expect(sent.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(await typesOf(visitor)).toEqual(['message.accepted', 'message.received'])
    expect(await codeOf(say(cores.other, visitor, 'one', { body: 'another text' }))).toBe('IDEMPOTENCY_CONFLICT')
  })

  it('has an operation id of its own, apart from those of visitors and agents', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'one')
    await answer(cores.core, visitor, 'one')
    expect(await say(cores.core, visitor, 'one')).toMatchObject({ replayed: false })
  })

  it('is rejected if a field is invalid', async () => {
    const visitor = await cores.newVisitor()
    const issues = async (more: object) => say(cores.core, visitor, 'one', more).catch((error) => error.issues)
    expect(await issues({ bot: { displayName: '' } })).toEqual([{ path: '/bot/displayName', rule: 'minLength' }])
    expect(await issues({ quickReplies: ['1', '2', '3', '4', '5', '6'] })).toEqual([
      { path: '/quickReplies', rule: 'maxItems' },
    ])
    expect(await issues({ quickReplies: ['a', 'a', ' ', 'a\nb', 'x'.repeat(81)] })).toEqual([
      { path: '/quickReplies', rule: 'uniqueItems' },
      { path: '/quickReplies/2', rule: 'pattern' },
      { path: '/quickReplies/3', rule: 'pattern' },
      { path: '/quickReplies/4', rule: 'maxLength' },
    ])
    expect(await typesOf(visitor)).toEqual([])
  })

  it('reopens a closed conversation', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    await cores.core.assignments.close(visitor.conversationId, undefined)
    await say(cores.other, visitor, 'one')
    expect((await typesOf(visitor)).slice(2)).toEqual(['conversation.reopened', 'message.received'])
  })

  it('is accepted while no operator is available', async () => {
    const visitor = await cores.newVisitor(await cores.newSite({ availability: { mode: 'away' } }))
    await send(cores.core, visitor, 'hello')
    expect(await say(cores.core, visitor, 'one')).toMatchObject({ replayed: false })
  })

  it('is accepted among many concurrent messages of the visitor', async () => {
    const visitor = await cores.newVisitor()
    await Promise.all([
      ...Array.from({ length: 40 }, (_, index) => send(cores.cores[index % 2]!, visitor, `visitor-${index}`)),
      ...Array.from({ length: 20 }, (_, index) => say(cores.cores[index % 2]!, visitor, `bot-${index}`)),
    ])
    expect(await typesOf(visitor)).toHaveLength(60)
  })
})

describe('a request for a person', () => {
  it('leaves the conversation open, unassigned, at the top and with the summary as a note, and stops the bot', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId, workspaceId } = visitor
    await send(cores.core, visitor, 'hello')
    await cores.core.assignments.assign(conversationId, { displayName: 'Ada' }, undefined)
    await cores.core.assignments.close(conversationId, undefined)
    await cores.core.inbox.drain()
    const later = await cores.newVisitor()
    await send(cores.core, later, 'newer')
    await cores.core.inbox.drain()
    cores.advance(1)
    expect(await request(cores.other, visitor)).toBe(true)
    const { conversations } = await cores.core.inbox.list({ workspaceId, status: 'open' })
    expect(conversations.map((each) => each.conversationId).slice(0, 2)).toEqual([conversationId, later.conversationId])
    expect(conversations[0]?.assignment?.agent).toBeUndefined()
    const [note] = await cores.core.notes.list(conversationId, undefined)
    expect(note).toMatchObject({ body: 'Wants Ada.', author: bot })
    expect(await codeOf(say(cores.core, visitor, 'one'))).toBe('BOT_STOPPED')
    expect(await codeOf(request(cores.core, visitor, 'again'))).toBe('BOT_STOPPED')
    const typing = { conversationId, state: 'started' as const, bot }
    expect(await codeOf(cores.core.typing.setByBot(typing, undefined))).toBe('BOT_STOPPED')
  })

  it('hands over once, also if it is repeated after the conversation was given back', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, index) => request(cores.cores[index % 2]!, visitor)),
    )
    expect(results.filter(Boolean)).toHaveLength(1)
    await cores.core.bots.resume(visitor.conversationId, undefined)
    expect(await request(cores.other, visitor)).toBe(false)
    expect((await stored(visitor)).bots?.isStopped).toBe(false)
    expect(await codeOf(request(cores.core, visitor, 'help', 'Another summary'))).toBe('IDEMPOTENCY_CONFLICT')
    expect(await request(cores.core, visitor, 'again')).toBe(true)
    expect((await typesOf(visitor)).slice(1)).toEqual(['human.requested', 'bot.resumed', 'human.requested'])
    expect(await cores.core.notes.list(visitor.conversationId, undefined)).toHaveLength(2)
  })

  it('is complete after its repeat at another core, however early the first core dies', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const visitor = await cores.newVisitor()
      await send(cores.core, visitor, 'hello')
      await cores.core.assignments.assign(visitor.conversationId, { displayName: 'Ada' }, undefined)
      let died = false
      await request(mortal, visitor).catch(() => {
        died = true
      })
      await request(cores.other, visitor)
      await cores.other.bots.reconcile()
      const { bots, assignment } = await stored(visitor)
      expect([bots?.isStopped, bots?.announced, assignment?.agent]).toEqual([true, true, undefined])
      expect(await cores.core.notes.list(visitor.conversationId, undefined)).toHaveLength(1)
      expect((await typesOf(visitor)).filter((type) => type === 'human.requested')).toHaveLength(1)
      return died
    })
  })

  it('is accepted if the conversation has no room for the summary', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    for (let index = 0; index < 100; index += 1) {
      const note = { conversationId, clientOperationId: `note-${index}`, body: 'x', agent: { displayName: 'Ada' } }
      await cores.core.notes.add(note, undefined)
    }
    expect(await request(cores.core, visitor)).toBe(true)
    expect((await stored(visitor)).bots?.isStopped).toBe(true)
  })
})

describe('a stopped bot', () => {
  it('has no message after the event that stopped it, although it sends all the time', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    let isOver = false
    const sending = cores.cores.map(async (core, which) => {
      for (let index = 0; !isOver; index += 1) await say(core, visitor, `${which}-${index}`).catch(() => {})
    })
    for (let round = 0; round < 20; round += 1) {
      const core = cores.cores[round % 2]!
      await send(core, visitor, `round-${round}`)
      await core.bots.stop(visitor.conversationId, undefined)
      const atStop = (await cores.log(visitor.conversationId)).at(-1)
      expect(atStop?.type).toBe('bot.stopped')
      await core.bots.resume(visitor.conversationId, undefined)
    }
    isOver = true
    await Promise.all(sending)
    const types = await typesOf(visitor)
    for (const [index, type] of types.entries())
      if (type === 'bot.stopped') expect(types[index + 1]).toBe('bot.resumed')
    expect(types.filter((type) => type === 'message.received').length).toBeGreaterThan(0)
  })

  it('gets the first answer for a message that was accepted before the stop', async () => {
    const visitor = await cores.newVisitor()
    const { event } = await say(cores.core, visitor, 'one')
    await cores.core.bots.stop(visitor.conversationId, undefined)
    expect(await say(cores.other, visitor, 'one')).toMatchObject({
      replayed: true,
      event: { sequence: event.sequence },
    })
    expect(await codeOf(say(cores.other, visitor, 'one', { body: 'another text' }))).toBe('IDEMPOTENCY_CONFLICT')
    expect(await codeOf(say(cores.other, visitor, 'two'))).toBe('BOT_STOPPED')
  })

  it('may write again after an operator has given the conversation back; both calls are idempotent', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    await Promise.all(cores.cores.map((core) => core.bots.stop(conversationId, undefined)))
    await Promise.all(cores.cores.map((core) => core.bots.resume(conversationId, undefined)))
    expect(await typesOf(visitor)).toEqual(['bot.stopped', 'bot.resumed'])
    expect(await say(cores.core, visitor, 'one')).toMatchObject({ replayed: false })
  })

  it('gets its missing event from `reconcile` if the process that stopped it died before it appended the event', async () => {
    const visitor = await cores.newVisitor()
    const state = { version: 1, isStopped: true, announced: false }
    await cores.core.stores.conversations.change(visitor.conversationId, 'bots', undefined, state)
    await Promise.all(cores.cores.map((core) => core.bots.reconcile()))
    expect(await typesOf(visitor)).toEqual(['bot.stopped'])
    expect(await cores.core.stores.conversations.unannounced('bots', 10)).toEqual([])
  })
})

describe('the events of a bot', () => {
  it('are in the feed with their content, and on no stream of a visitor', async () => {
    const visitor = await cores.newVisitor(await cores.newSite())
    const stream = await cores.openStream(visitor)
    await send(cores.core, visitor, 'hello')
    await say(cores.core, visitor, 'one')
    await request(cores.core, visitor)
    await cores.core.bots.resume(visitor.conversationId, undefined)
    await cores.core.bots.stop(visitor.conversationId, undefined)
    await send(cores.core, visitor, 'bye')
    await cores.core.flushFeed()
    const { events, headers } = await botOf(visitor)
    const page = await events.listEvents({}, { headers })
    const content = ({ type, message, botRequest }: Event) => [
      type,
      message?.message?.body ?? botRequest?.bot?.displayName,
    ]
    expect(page.events.map(content)).toEqual([
      ['conversation.created', undefined],
      ['message.visitor', 'hello'],
      ['message.bot', 'one'],
      ['human.requested', 'Robo'],
      ['bot.resumed', undefined],
      ['bot.stopped', undefined],
      ['message.visitor', 'bye'],
    ])
    await until('the last message', () => stream.types.length === 3)
    expect(stream.types).toEqual(['message.accepted', 'message.received', 'message.accepted'])
    const late = await cores.openStream(visitor)
    await until('the replay', () => late.types.length === 3)
    expect(late.position).toBe(6)
  })
})

describe('the token of a bot', () => {
  it('needs a workspace and has no other scopes', async () => {
    const { access } = cores.core
    const { workspaceId } = cores
    const grant = { subject: 'robo', scopes: ['bots:act'] }
    await expect(access.issue(grant)).rejects.toThrow('needs a workspace')
    await expect(access.issue({ ...grant, workspaceId, scopes: ['bots:act', 'messages:write'] })).rejects.toThrow(
      'may not have messages:write',
    )
    const header = `Bearer ${await access.issue({ ...grant, workspaceId })}`
    const { scopes } = await access.authenticate(header, 'bots:act')
    expect([...scopes].toSorted()).toEqual(['bots:act', 'events:read', 'messages:read'])
    expect(await codeOf(access.authenticate(header, 'messages:write'))).toBe('PERMISSION_DENIED')
  })

  it('does not reach conversations of another workspace', async () => {
    const visitor = await cores.newVisitor(await cores.newSite())
    const { bots, headers } = await botOf(await cores.newVisitor())
    const call = { conversationId: visitor.conversationId, clientOperationId: 'one', bot }
    const codes = await Promise.all([
      bots.sendBotMessage({ ...call, body: 'x' }, { headers }).catch(({ code }) => code),
      bots.requestHuman({ ...call, summary: 'x' }, { headers }).catch(({ code }) => code),
      bots.setBotTyping({ ...call, state: 1 }, { headers }).catch(({ code }) => code),
    ])
    expect(codes).toEqual([5, 5, 5])
  })
})

it('typing of a bot is on the visitor’s stream until its message', async () => {
  const visitor = await cores.newVisitor()
  const stream = await cores.openStream(visitor)
  const { conversationId } = visitor
  await cores.core.typing.setByBot({ conversationId, state: 'started', bot }, undefined)
  await say(cores.core, visitor, 'one')
  await until('the end of typing', () => stream.types.includes('typing.stopped'))
  expect(stream.types).toEqual(['typing.started', 'message.received', 'typing.stopped'])
  expect(JSON.parse(stream.json[0]!).data.author).toMatchObject({ kind: 'bot', displayName: 'Robo' })
})
