import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Event } from '#proto/events/v1/events_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { findConversations } from '../log/conversation-store.ts'
import { logOf } from '../log/event-log.ts'
import { exportVisitor, visitorOfSession } from '../privacy/visitor-data.ts'
import { append, bot, botOf, request, say } from '../test/bots.ts'
import { answer, codeOf, send, type TestVisitor, testCores } from '../test/cores.ts'
import { flushFeed } from '../test/feed.ts'
import { accessOf } from '../transport/caller.ts'
import { botScopes, knownScopes } from '../workspaces/access.ts'
import { assignAgent, closeConversation } from './assignments.ts'
import { botEvents, handOverIfAsked, resumeBots, stopBots } from './bots.ts'
import { inboxOf, listConversations } from './inbox.ts'
import { listMessagesForVisitor } from './messages.ts'
import { addNote, listNotes } from './notes.ts'
import { reconcileStates } from './state-events.ts'
import { setTypingOfBot } from './typing.ts'

const cores = testCores({ count: 2, started: false })

const typesOf = async ({ conversationId }: TestVisitor) => (await cores.log(conversationId)).map(({ type }) => type)
const stored = async ({ conversationId }: TestVisitor) => (await findConversations(cores.core, [conversationId]))[0]!

describe('a message of a bot', () => {
  it('has the author, the picture and the quick replies, in history and streams', async () => {
    const visitor = await cores.newVisitor()
    const stream = await cores.openStream(visitor)
    await send(cores.core, visitor, 'hello')
    const { bots, headers } = await botOf(cores.core, visitor.workspaceId)
    const { conversationId } = visitor
    const quickReplies = ['Prices', 'Opening hours']
    const call = { conversationId, clientOperationId: 'one', body: 'What is it about?', bot, quickReplies }
    const { message } = await bots.sendBotMessage(call, { headers })
    expect(message).toMatchObject({ author: { kind: 'bot', ...bot }, body: call.body, quickReplies })
    await until('the event', () => stream.json.length === 2)
    expect(JSON.parse(stream.json[1]!).data.message).toMatchObject({ author: { kind: 'bot', ...bot }, quickReplies })
    const { messages } = await listMessagesForVisitor(cores.core, visitor.credentials, {})
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
    expect(await codeOf(say(cores.other, visitor, 'one', { body: 'another text' }))).toBe('IdempotencyConflict')
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
    await closeConversation(cores.core, visitor.conversationId, undefined)
    await say(cores.other, visitor, 'one')
    expect((await typesOf(visitor)).slice(2)).toEqual(['conversation.reopened', 'message.received'])
  })

  it('is accepted while no operator is available', async () => {
    const visitor = await cores.newVisitor(await cores.newSite({ availability: { mode: 'away' } }))
    await send(cores.core, visitor, 'hello')
    expect(await say(cores.core, visitor, 'one')).toMatchObject({ replayed: false })
  })

  itLong('is accepted among many concurrent messages of the visitor', async () => {
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
    await assignAgent(cores.core, conversationId, { displayName: 'Ada' }, undefined)
    await closeConversation(cores.core, conversationId, undefined)
    await inboxOf(cores.core).drain()
    const later = await cores.newVisitor()
    await send(cores.core, later, 'newer')
    await inboxOf(cores.core).drain()
    cores.advance(1)
    expect(await request(cores.other, visitor)).toBe(true)
    const { conversations } = await listConversations(cores.core, { workspaceId, status: 'open' })
    expect(conversations.map((each) => each.conversationId).slice(0, 2)).toEqual([conversationId, later.conversationId])
    expect(conversations[0]?.assignment?.agent).toBeUndefined()
    const [note] = await listNotes(cores.core, conversationId, undefined)
    expect(note).toMatchObject({ body: 'Wants Ada.', author: bot })
    expect(await codeOf(say(cores.core, visitor, 'one'))).toBe('BotStopped')
    expect(await codeOf(request(cores.core, visitor, 'again'))).toBe('BotStopped')
    const typing = { conversationId, state: 'started' as const, bot }
    expect(await codeOf(setTypingOfBot(cores.core, typing, undefined))).toBe('BotStopped')
  })

  itLong('hands over once, also if it is repeated after the conversation was given back', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, index) => request(cores.cores[index % 2]!, visitor)),
    )
    expect(results.filter(Boolean)).toHaveLength(1)
    await resumeBots(cores.core, visitor.conversationId, undefined)
    expect(await request(cores.other, visitor)).toBe(false)
    expect((await stored(visitor)).bots?.isStopped).toBe(false)
    expect(await codeOf(request(cores.core, visitor, 'help', 'Another summary'))).toBe('IdempotencyConflict')
    expect(await request(cores.core, visitor, 'again')).toBe(true)
    expect((await typesOf(visitor)).slice(1)).toEqual(['human.requested', 'bot.resumed', 'human.requested'])
    expect(await listNotes(cores.core, visitor.conversationId, undefined)).toHaveLength(2)
  })

  itLong('is complete after its repeat at another core, however early the first core dies', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const visitor = await cores.newVisitor()
      await send(cores.core, visitor, 'hello')
      await assignAgent(cores.core, visitor.conversationId, { displayName: 'Ada' }, undefined)
      let died = false
      await request(mortal, visitor).catch(() => {
        died = true
      })
      await request(cores.other, visitor)
      await reconcileStates(cores.other, botEvents)
      const { bots, assignment } = await stored(visitor)
      expect([bots?.isStopped, bots?.announced, assignment?.agent]).toEqual([true, true, undefined])
      expect(await listNotes(cores.core, visitor.conversationId, undefined)).toHaveLength(1)
      expect((await typesOf(visitor)).filter((type) => type === 'human.requested')).toHaveLength(1)
      return died
    })
  })

  it('is in the export of the visitor without the fields that the service keeps for itself', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'help')
    await request(cores.core, visitor, 'one')
    const lines: string[] = []
    const name = await visitorOfSession(cores.core, visitor.sessionId, undefined)
    for await (const line of exportVisitor(cores.core, name)) lines.push(line)
    const records = lines.map((line) => JSON.parse(line))
    expect(records.find(({ kind }) => kind === 'conversation').bots).toMatchObject({ isStopped: true })
    expect(lines.join()).not.toMatch(/inputHash|operationId|reviewAt|generation|connectionVersion/)
  })

  it('of a visitor, in the words of a language of the widget, hands over once if a bot has answered before', async () => {
    const visitor = await cores.newVisitor()
    const ask = async (body: string) => {
      const { event } = await send(cores.core, visitor, randomUUID(), body)
      await Promise.all(cores.cores.map((core) => handOverIfAsked(core, event)))
      return event
    }
    const words = 'Mit einem Menschen sprechen'
    await ask(words)
    await append(cores.core, visitor, 'one', 0, 'Let me')
    await ask('Talk to a person please')
    const asked = await ask(words)
    expect(await append(cores.other, visitor, 'one', 6, ' see')).toMatchObject({ state: 'interrupted' })
    expect(await codeOf(say(cores.core, visitor, 'two'))).toBe('BotStopped')
    await ask(words)
    await resumeBots(cores.core, visitor.conversationId, undefined)
    await handOverIfAsked(cores.core, asked)
    expect(await say(cores.core, visitor, 'two')).toMatchObject({ replayed: false })
    await ask(words)
    expect((await typesOf(visitor)).filter((type) => !type.startsWith('message.'))).toEqual([
      'human.requested',
      'bot.resumed',
      'human.requested',
    ])
    expect((await stored(visitor)).bots?.isStopped).toBe(true)
    expect(await listNotes(cores.core, visitor.conversationId, undefined)).toEqual([])
  })

  it('of a visitor hands over, however long ago a bot has answered', async () => {
    const visitor = await cores.newVisitor()
    await say(cores.core, visitor, 'one')
    for (let index = 0; index < 21; index += 1) await send(cores.core, visitor, `visitor-${index}`)
    await inboxOf(cores.core).noted()
    const { event } = await send(cores.core, visitor, 'ask', 'Talk to a person')
    await handOverIfAsked(cores.other, event)
    expect((await stored(visitor)).bots?.isStopped).toBe(true)
  })

  it('opens a conversation that another core has just closed', async () => {
    const visitor = await cores.newVisitor(await cores.newSite())
    const { conversationId, workspaceId } = visitor
    await send(cores.core, visitor, 'hello')
    await logOf(cores.other).append({ conversationId, type: 'conversation.closed' })
    await request(cores.core, visitor)
    expect((await typesOf(visitor)).slice(1)).toEqual([
      'conversation.closed',
      'conversation.reopened',
      'human.requested',
    ])
    const { conversations } = await listConversations(cores.core, { workspaceId, unanswered: true })
    expect(conversations).toMatchObject([{ conversationId, status: 'open' }])
  })

  itLong('is accepted if the conversation has no room for the summary', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    for (let index = 0; index < 100; index += 1) {
      const note = { conversationId, clientOperationId: `note-${index}`, body: 'x', agent: { displayName: 'Ada' } }
      await addNote(cores.core, note, undefined)
    }
    expect(await request(cores.core, visitor)).toBe(true)
    expect((await stored(visitor)).bots?.isStopped).toBe(true)
  })
})

describe('a stopped bot', () => {
  itLong('has no message after the event that stopped it, although it sends all the time', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    let isOver = false
    const sending = cores.cores.map(async (core, which) => {
      for (let index = 0; !isOver; index += 1) await say(core, visitor, `${which}-${index}`).catch(() => {})
    })
    for (let round = 0; round < 20; round += 1) {
      const core = cores.cores[round % 2]!
      await send(core, visitor, `round-${round}`)
      await stopBots(core, visitor.conversationId, undefined)
      const atStop = (await cores.log(visitor.conversationId)).at(-1)
      expect(atStop?.type).toBe('bot.stopped')
      await resumeBots(core, visitor.conversationId, undefined)
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
    await stopBots(cores.core, visitor.conversationId, undefined)
    expect(await say(cores.other, visitor, 'one')).toMatchObject({
      replayed: true,
      event: { sequence: event.sequence },
    })
    expect(await codeOf(say(cores.other, visitor, 'one', { body: 'another text' }))).toBe('IdempotencyConflict')
    expect(await codeOf(say(cores.other, visitor, 'two'))).toBe('BotStopped')
  })

  it('may write again after an operator has given the conversation back; both calls are idempotent', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    await Promise.all(cores.cores.map((core) => stopBots(core, conversationId, undefined)))
    await Promise.all(cores.cores.map((core) => resumeBots(core, conversationId, undefined)))
    expect(await typesOf(visitor)).toEqual(['bot.stopped', 'bot.resumed'])
    expect(await say(cores.core, visitor, 'one')).toMatchObject({ replayed: false })
  })

  it('gets its missing event from `reconcile` if the process that stopped it died before it appended the event', async () => {
    const visitor = await cores.newVisitor()
    const state = { version: 1, isStopped: true, announced: false }
    await cores.core.db.conversations.updateOne({ _id: visitor.conversationId }, { $set: { bots: state } })
    await Promise.all(cores.cores.map((core) => reconcileStates(core, botEvents)))
    expect(await typesOf(visitor)).toEqual(['bot.stopped'])
    expect(await cores.core.db.conversations.find({ 'bots.announced': false }).toArray()).toEqual([])
  })
})

it('the events of a bot are in the feed with their content, and on no stream of a visitor', async () => {
  const visitor = await cores.newVisitor(await cores.newSite())
  const stream = await cores.openStream(visitor)
  await send(cores.core, visitor, 'hello')
  await say(cores.core, visitor, 'one')
  await request(cores.core, visitor)
  await resumeBots(cores.core, visitor.conversationId, undefined)
  await stopBots(cores.core, visitor.conversationId, undefined)
  await send(cores.core, visitor, 'bye')
  await flushFeed(cores.core)
  const { events, headers } = await botOf(cores.core, visitor.workspaceId)
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

describe('the token of a bot', () => {
  it('needs a workspace and has no other scopes', async () => {
    const access = accessOf(cores.core)
    const { workspaceId } = cores
    const grant = { subject: 'robo', scopes: ['bots:act'] }
    await expect(access.issue(grant)).rejects.toThrow('needs a workspace')
    await expect(access.issue({ ...grant, workspaceId, scopes: ['bots:act', 'messages:write'] })).rejects.toThrow(
      'may not have messages:write',
    )
    const header = `Bearer ${await access.issue({ ...grant, workspaceId })}`
    const { scopes } = await access.authenticate(header, 'bots:act')
    expect([...scopes].toSorted()).toEqual(['bots:act', 'events:read', 'messages:read'])
    for (const scope of [...knownScopes, 'cores:announce'].filter((each) => !botScopes.includes(each)))
      expect(await codeOf(access.authenticate(header, scope)), scope).toBe('PermissionDenied')
  })

  it('does not reach conversations of another workspace', async () => {
    const visitor = await cores.newVisitor(await cores.newSite())
    const { bots, headers } = await botOf(cores.core, cores.workspaceId)
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
  await setTypingOfBot(cores.core, { conversationId, state: 'started', bot }, undefined)
  await say(cores.core, visitor, 'one')
  await until('the end of typing', () => stream.types.includes('typing.stopped'))
  expect(stream.types).toEqual(['typing.started', 'message.received', 'typing.stopped'])
  expect(JSON.parse(stream.json[0]!).data.author).toMatchObject({ kind: 'bot', displayName: 'Robo' })
})
