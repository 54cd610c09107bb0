import { describe, expect, it } from 'vitest'
import type { Event } from '#proto/events/v1/events_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { flushFeed } from '../feed/jobs.ts'
import { bot, botOf, request, say } from '../test/bots.ts'
import { codeOf, send, type TestVisitor, testCores } from '../test/cores.ts'
import { accessOf } from '../transport/caller.ts'
import { botScopes, knownScopes } from '../workspaces/access.ts'
import { botEvents, resumeBots, stopBots } from './bots.ts'
import { reconcileStates } from './state-events.ts'
import { setTypingOfBot } from './typing.ts'

const cores = testCores({ count: 2, started: false })

const typesOf = async ({ conversationId }: TestVisitor) => (await cores.log(conversationId)).map(({ type }) => type)

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
    expect(await codeOf(say(cores.other, visitor, 'one', { body: 'another text' }))).toBe('IDEMPOTENCY_CONFLICT')
    expect(await codeOf(say(cores.other, visitor, 'two'))).toBe('BOT_STOPPED')
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

describe('the events of a bot', () => {
  it('are in the feed with their content, and on no stream of a visitor', async () => {
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
      expect(await codeOf(access.authenticate(header, scope)), scope).toBe('PERMISSION_DENIED')
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
