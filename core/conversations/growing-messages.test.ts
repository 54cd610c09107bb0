import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { redactMessage } from '../deliveries/redactions.ts'
import { publicMessage } from '../log/message-model.ts'
import type { LogEvent } from '../log-event.ts'
import { exportVisitor } from '../privacy/visitor-data.ts'
import { searchIndexOf } from '../search/search-index.ts'
import { append, bot, botOf, request, say, stopAnswer } from '../test/bots.ts'
import { claimDue } from '../test/claims.ts'
import { answer, codeOf, send, type TestVisitor, testCores } from '../test/cores.ts'
import { flushFeed } from '../test/feed.ts'
import { destinationUrl, newHookScene } from '../test/hook-scenes.ts'
import type { TestStream } from '../test/streams.ts'
import { placesOfTexts, visitorOf } from '../test/visitor-marks.ts'
import { closeConversation } from './assignments.ts'
import { stopBots } from './bots.ts'
import { endOverdueGrowth } from './growing-messages.ts'
import { listConversations } from './inbox.ts'
import { listMessages } from './messages.ts'
import { searchTexts } from './search.ts'
import { firstUnseen } from './unseen-messages.ts'

const cores = testCores({ count: 2, started: false })
const pauseMs = 30_000

const events = (stream: TestStream) => stream.json.map((json) => JSON.parse(json))

/** Returns what a reader shows of a message, by the rules of the contract. Throws at a gap. */
function shownBy(stream: TestStream): { text: string; growing: boolean } {
  const shown = { text: '', growing: false }
  for (const { type, data } of events(stream)) {
    if (data.message?.author.kind === 'bot')
      Object.assign(shown, { text: data.message.body, growing: data.message.growing === true })
    if (type !== 'message.grew') continue
    const points = [...shown.text]
    if (data.offset > points.length) throw new Error(`gap at ${data.offset}`)
    shown.text = points.slice(0, data.offset).join('') + data.text
  }
  return shown
}

const historyOf = async ({ conversationId }: TestVisitor, core = cores.other) =>
  (await listMessages(core, conversationId, {})).messages

describe('AppendBotMessage', () => {
  it('creates one message, adds text at the end, and completes the message with its last text', async () => {
    const visitor = await cores.newVisitor()
    const first = await append(cores.core, visitor, 'a', 0, 'Grüß ')
    expect(first).toEqual({ messageId: expect.any(String), length: 5, state: 'growing', replayed: false })
    expect(await append(cores.other, visitor, 'a', 5, '😀 Gott')).toEqual({ ...first, length: 11 })
    expect(await historyOf(visitor)).toMatchObject([
      { message: { body: 'Grüß 😀 Gott' }, growth: { state: 'growing' } },
    ])
    const last = await append(cores.core, visitor, 'a', 11, '!', { done: true, quickReplies: ['Yes', 'No'] })
    expect(last).toEqual({ ...first, length: 12, state: 'completed' })
    const log = await cores.log(visitor.conversationId)
    expect(log.map(({ type }) => type)).toEqual(['message.received', 'message.completed'])
    for (const { message } of log)
      expect(message).toMatchObject({
        body: 'Grüß 😀 Gott!',
        author: { kind: 'bot', ...bot },
        quickReplies: ['Yes', 'No'],
      })
    expect(await historyOf(visitor)).toHaveLength(1)
  })

  it('returns the first result for a repeat, and refuses another text and a gap', async () => {
    const visitor = await cores.newVisitor()
    await append(cores.core, visitor, 'a', 0, 'one ')
    await append(cores.core, visitor, 'a', 4, 'two ')
    for (const core of cores.cores) {
      expect(await append(core, visitor, 'a', 0, 'one ')).toMatchObject({ length: 8, state: 'growing', replayed: true })
      expect(await append(core, visitor, 'a', 4, 'two ')).toMatchObject({ length: 8, replayed: true })
      expect(await codeOf(append(core, visitor, 'a', 0, 'eno '))).toBe('IdempotencyConflict')
      expect(await codeOf(append(core, visitor, 'a', 4, 'two three'))).toBe('IdempotencyConflict')
      await expect(append(core, visitor, 'a', 9, 'four')).rejects.toMatchObject({
        issues: [{ path: '/offset', rule: 'offset' }],
      })
      await expect(append(core, visitor, 'new', 1, 'x')).rejects.toMatchObject({
        issues: [{ path: '/offset', rule: 'offset' }],
      })
    }
    await append(cores.other, visitor, 'a', 8, '', { done: true, quickReplies: ['Yes'] })
    const done = { done: true, quickReplies: ['Yes'] }
    expect(await append(cores.core, visitor, 'a', 8, '', done)).toMatchObject({ state: 'completed', replayed: true })
    expect(await codeOf(append(cores.core, visitor, 'a', 8, '', { done: true }))).toBe('IdempotencyConflict')
    expect(await append(cores.core, visitor, 'a', 8, 'late')).toMatchObject({
      state: 'completed',
      replayed: false,
      length: 8,
    })
    expect(await codeOf(say(cores.core, visitor, 'a'))).toBe('IdempotencyConflict')
    await say(cores.core, visitor, 'whole')
    expect(await codeOf(append(cores.core, visitor, 'whole', 0, 'whole'))).toBe('IdempotencyConflict')
  })

  it('holds the bounds of a message for the whole text', async () => {
    const visitor = await cores.newVisitor()
    await append(cores.core, visitor, 'long', 0, 'x'.repeat(3_990))
    expect(await codeOf(append(cores.core, visitor, 'long', 3_990, 'y'.repeat(11)))).toBe('ValidationFailed')
    expect(await append(cores.core, visitor, 'long', 3_990, 'y'.repeat(10))).toMatchObject({ length: 4_000 })
    expect(await append(cores.core, visitor, 'blank', 0, ' ')).toMatchObject({ length: 1 })
    expect(await codeOf(append(cores.core, visitor, 'blank', 1, '\n', { done: true }))).toBe('ValidationFailed')
    expect(await codeOf(append(cores.core, visitor, 'none', 0, ' ', { done: true }))).toBe('ValidationFailed')
    expect(await codeOf(append(cores.core, visitor, 'early', 0, 'a', { quickReplies: ['Yes'] }))).toBe(
      'ValidationFailed',
    )
    expect((await historyOf(visitor)).map(({ message }) => message?.body.length)).toEqual([4_000, 1])
  })

  it('needs the scope of bots and a conversation of the workspace', async () => {
    const visitor = await cores.newVisitor(await cores.newSite())
    const { bots, headers } = await botOf(cores.core, visitor.workspaceId)
    const call = { conversationId: visitor.conversationId, clientOperationId: 'a', text: 'Hi', bot }
    const { messageId, ...rest } = await bots.appendBotMessage(call, { headers })
    expect(rest).toMatchObject({ length: 2, state: 'growing', replayed: false })
    expect(messageId).toMatch(/^msg_/)
    await expect(bots.appendBotMessage({ ...call, conversationId: 'cnv_0' }, { headers })).rejects.toThrow('NotFound')
    const foreign = await botOf(cores.core, cores.workspaceId)
    await expect(bots.appendBotMessage(call, { headers: foreign.headers })).rejects.toThrow('NotFound')
    await expect(bots.appendBotMessage({ ...call, clientOperationId: 'b', bot: {} }, { headers })).rejects.toThrow(
      'ValidationFailed',
    )
  })
})

describe('readers', () => {
  it('get the message, its parts and its end in order, at most ten parts a second', async () => {
    const visitor = await cores.newVisitor()
    const stream = await cores.openStream(visitor)
    const started = Date.now()
    let text = ''
    for (let index = 0; index < 40; index += 1) {
      const part = `part ${index} `
      await append(cores.cores[index % 2]!, visitor, 'a', text.length, part)
      text += part
      if (index === 20) await until('a part', () => stream.types.includes('message.grew'))
    }
    await append(cores.core, visitor, 'a', text.length, 'end', { done: true })
    await until('the end', () => stream.types.includes('message.completed'))
    const seconds = (Date.now() - started) / 1000
    expect(shownBy(stream)).toEqual({ text: `${text}end`, growing: false })
    const [received] = events(stream)
    expect(received).toMatchObject({ type: 'message.received', data: { message: { growing: true, sequence: 1 } } })
    const completed = events(stream).at(-1)
    expect(completed).toMatchObject({ sequence: 2, type: 'message.completed', data: { message: { sequence: 1 } } })
    expect(completed.data.message.createdAt).toBe(received.data.message.createdAt)
    expect(completed.data.message).not.toHaveProperty('growing')
    expect(stream.types.filter((type) => type === 'message.grew').length).toBeLessThanOrEqual(10 * seconds + 1)
  })

  it('who open or resume get the whole text so far once, on each core', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    await append(cores.core, visitor, 'a', 0, 'one ')
    await append(cores.core, visitor, 'a', 4, 'two ')
    const late = await cores.openStream(visitor)
    await until('the message', () => late.types.length === 2)
    expect(shownBy(late)).toEqual({ text: 'one two ', growing: true })
    const resumed = await cores.openStream(visitor, cores.core, { afterSequence: 2 })
    await until('the text', () => resumed.types.length === 1)
    expect(events(resumed)).toMatchObject([{ type: 'message.grew', data: { offset: 0, text: 'one two ' } }])
    await append(cores.core, visitor, 'a', 8, 'three')
    await until('the part', () => resumed.types.length === 2)
    expect(events(resumed).at(-1)).toMatchObject({ data: { offset: 8, text: 'three' } })
    await append(cores.core, visitor, 'a', 13, '', { done: true })
    for (const core of cores.cores) {
      const replay = await cores.openStream(visitor, core)
      await until('the replay', () => replay.types.length === 3)
      expect(replay.types).toEqual(['message.accepted', 'message.received', 'message.completed'])
      expect(
        events(replay)
          .slice(1)
          .map(({ data }) => data.message.body),
      ).toEqual(['one two three', 'one two three'])
      expect(events(replay)[1].data.message).not.toHaveProperty('growing')
    }
  })
})

describe('a stop of the visitor', () => {
  it('is final on each core, and a repeat with its key returns the first answer', async () => {
    const visitor = await cores.newVisitor()
    const { messageId } = await append(cores.core, visitor, 'a', 0, 'one ')
    const stopped = await stopAnswer(cores.other, visitor, messageId, 'k')
    expect(stopped).toEqual({ messageId, state: 'stopped', sequence: 2, replayed: false })
    expect(await stopAnswer(cores.core, visitor, messageId, 'k')).toEqual({ ...stopped, replayed: true })
    expect(await stopAnswer(cores.core, visitor, messageId)).toEqual(stopped)
    for (const core of cores.cores)
      expect(await append(core, visitor, 'a', 4, 'two')).toEqual({
        messageId,
        length: 4,
        state: 'stopped',
        replayed: false,
      })
    expect((await historyOf(visitor)).map(({ message }) => message?.body)).toEqual(['one '])
    const other = await append(cores.core, visitor, 'b', 0, 'b')
    expect(await codeOf(stopAnswer(cores.core, visitor, other.messageId, 'k'))).toBe('IdempotencyConflict')
  })

  it('keeps the state of a message that has ended, and refuses other messages', async () => {
    const visitor = await cores.newVisitor()
    const { messageId } = await append(cores.core, visitor, 'a', 0, 'one', { done: true })
    expect(await stopAnswer(cores.core, visitor, messageId)).toMatchObject({ state: 'completed', sequence: 2 })
    const { event } = await say(cores.core, visitor, 'whole')
    expect(await codeOf(stopAnswer(cores.core, visitor, event.message!.messageId))).toBe('NotFound')
    const stranger = await cores.newVisitor()
    const { messageId: theirs } = await append(cores.core, stranger, 'a', 0, 'one')
    expect(await codeOf(stopAnswer(cores.core, visitor, theirs))).toBe('NotFound')
    const off = await cores.newVisitor(await cores.newSite({ capabilities: { stopAnswer: false } }))
    expect(await codeOf(stopAnswer(cores.core, off, messageId))).toBe('RouteNotAdvertised')
  })

  it('is told to readers like an interruption, and nothing is told of a whole answer', async () => {
    const ends = {
      stopped: (visitor: TestVisitor, messageId: string) => stopAnswer(cores.core, visitor, messageId),
      interrupted: ({ conversationId }: TestVisitor) => stopBots(cores.core, conversationId, undefined),
      completed: (visitor: TestVisitor) => append(cores.core, visitor, 'a', 3, '', { done: true }),
    }
    for (const [state, end] of Object.entries(ends)) {
      const visitor = await cores.newVisitor()
      const stream = await cores.openStream(visitor)
      const { messageId } = await append(cores.core, visitor, 'a', 0, 'one')
      await end(visitor, messageId)
      await until('the end', () => stream.types.includes('message.completed'))
      const replay = await cores.openStream(visitor, cores.other)
      await until('the replay', () => replay.types.length === 2)
      const [{ message }] = (await historyOf(visitor)) as [LogEvent]
      const ofReaders = [...events(replay), events(stream).at(-1)].map(({ data }) => data.message.ended)
      const expected = state === 'completed' ? undefined : state
      expect([message?.ended, ...ofReaders], state).toEqual(Array(4).fill(expected))
    }
  })

  itLong('that races with appends on two cores shows just what was accepted before it', async () => {
    for (let round = 0; round < 10; round += 1) {
      const visitor = await cores.newVisitor()
      const { messageId } = await append(cores.core, visitor, 'a', 0, '0')
      let length = 1
      const writing = (async () => {
        for (;;) {
          const answer = await append(cores.cores[length % 2]!, visitor, 'a', length, String(length % 10))
          length = answer.length
          if (answer.state !== 'growing') return answer
        }
      })()
      await until('some text', () => length > 3)
      const stopped = await stopAnswer(cores.cores[round % 2]!, visitor, messageId)
      expect(stopped.state).toBe('stopped')
      expect(await writing).toMatchObject({ state: 'stopped', replayed: false })
      const log = await cores.log(visitor.conversationId)
      expect(log.map(({ message }) => message?.body)).toEqual(
        Array(2).fill([...Array(length).keys()].map((n) => n % 10).join('')),
      )
    }
  })
})

describe('a message that grows', () => {
  it('is interrupted after a pause by any core, once', async () => {
    const visitor = await cores.newVisitor()
    await append(cores.core, visitor, 'a', 0, 'one')
    await append(cores.core, visitor, 'b', 0, 'two')
    cores.advance(pauseMs / 1000 - 5)
    await append(cores.other, visitor, 'b', 3, '')
    cores.advance(6)
    await Promise.all(cores.cores.map((core) => endOverdueGrowth(core)))
    const log = await cores.log(visitor.conversationId)
    expect(log.map(({ type }) => type)).toEqual(['message.received', 'message.received', 'message.completed'])
    expect(log.map(({ growth }) => growth?.state)).toEqual(['interrupted', 'growing', undefined])
    expect(await append(cores.core, visitor, 'a', 3, ' more')).toMatchObject({ state: 'interrupted', length: 3 })
    expect(await append(cores.core, visitor, 'b', 3, ' more')).toMatchObject({ state: 'growing' })
  })

  it('leaves its visitor waiting if it ends without text, and nobody is told of it', async () => {
    const visitor = await cores.newVisitor(await cores.newSite())
    await send(cores.core, visitor, 'hello')
    await append(cores.core, visitor, 'a', 0, ' ')
    const { workspaceId } = visitor
    const unanswered = async () =>
      (await listConversations(cores.core, { workspaceId, unanswered: true })).conversations.length
    expect(await unanswered()).toBe(0)
    cores.advance(pauseMs / 1000 + 1)
    await endOverdueGrowth(cores.core)
    expect(await unanswered()).toBe(1)
    expect(firstUnseen((await cores.log(visitor.conversationId)).toReversed())).toBeUndefined()
  })

  it('is completed by another core if its core dies at any write', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const visitor = await cores.newVisitor()
      const parts = ['one ', 'two ', 'three']
      let died = false
      const text = await parts.reduce(async (before, part, index) => {
        const accepted = await before
        const done = { done: index === 2 }
        const { length } = await append(mortal, visitor, 'a', accepted.length, part, done).catch(() => {
          died = true
          return append(cores.core, visitor, 'a', accepted.length, part, done)
        })
        expect(length).toBe(accepted.length + part.length)
        return accepted + part
      }, Promise.resolve(''))
      await endOverdueGrowth(cores.core)
      const log = await cores.log(visitor.conversationId)
      expect(log.map(({ type, message }) => [type, message?.body])).toEqual([
        ['message.received', text],
        ['message.completed', text],
      ])
      expect(log[0]?.growth).toMatchObject({ state: 'completed', end: 2 })
      expect(log[0]?.growth).not.toHaveProperty('until')
      return died
    })
  })

  it('ends at once when an operator stops bots, when the bot asks for a person, and when it is withdrawn', async () => {
    const ends = {
      stop: (visitor: TestVisitor) => stopBots(cores.other, visitor.conversationId, undefined),
      person: (visitor: TestVisitor) => request(cores.other, visitor),
      withdrawal: ({ conversationId }: TestVisitor) =>
        redactMessage(cores.other, { conversationId, sequence: 1 }, { subject: 'op', anyAuthor: true }),
    }
    for (const [name, end] of Object.entries(ends)) {
      const visitor = await cores.newVisitor()
      const stream = await cores.openStream(visitor)
      await append(cores.core, visitor, 'a', 0, 'secret')
      await end(visitor)
      expect(await append(cores.core, visitor, 'a', 6, 'more'), name).toMatchObject({ state: 'interrupted', length: 6 })
      await stream.close()
      const bodies = (await historyOf(visitor)).map(({ message }) => message?.body)
      expect(bodies, name).toEqual([name === 'withdrawal' ? '' : 'secret'])
      if (name === 'withdrawal') {
        const late = await cores.openStream(visitor)
        await until('the replay', () => late.types.length === 3)
        expect(late.json.join()).not.toContain('secret')
      } else expect(await codeOf(append(cores.core, visitor, 'b', 0, 'x')), name).toBe('BotStopped')
    }
  })

  it('is not said to grow in the answer to its withdrawal', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    await append(cores.core, visitor, 'a', 0, 'secret')
    const caller = { subject: 'op', anyAuthor: true }
    const redacted = await redactMessage(cores.other, { conversationId, sequence: 1 }, caller)
    const shown = publicMessage(redacted, redacted.message!, 'sent')
    expect(shown).toMatchObject({ body: '', redactedAt: expect.any(Date), growing: undefined, ended: undefined })
  })

  it('reopens a conversation when it begins, not when it ends, and leaves a later question unanswered', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    await send(cores.core, visitor, 'hello')
    await append(cores.core, visitor, 'a', 0, 'one')
    await send(cores.core, visitor, 'and')
    await append(cores.core, visitor, 'a', 3, '', { done: true })
    expect((await cores.log(conversationId)).at(-1)).toMatchObject({ waitingSince: expect.any(Date) })
    await append(cores.core, visitor, 'b', 0, 'two')
    await closeConversation(cores.core, conversationId, undefined)
    await append(cores.core, visitor, 'b', 3, '', { done: true })
    expect((await cores.log(conversationId)).at(-1)).toMatchObject({ type: 'message.completed', closed: true })
  })

  it('is in the feed and in the search once, with its whole text, when it has ended', async () => {
    const visitor = await cores.newVisitor(await cores.newSite())
    const { workspaceId } = visitor
    const { events: feed, headers } = await botOf(cores.core, workspaceId)
    const listed = async () => {
      await flushFeed(cores.core)
      const page = await feed.listEvents({}, { headers })
      return page.events.map(({ type, message }) => [type, message?.message?.body])
    }
    const found = async (query: string) => {
      await searchIndexOf(cores.core).flush()
      const { results } = await searchTexts(cores.core, { workspaceId, query, kinds: ['message'] })
      return results.length
    }
    await send(cores.core, visitor, 'hello')
    await append(cores.core, visitor, 'a', 0, 'early ')
    const before = [
      ['conversation.created', undefined],
      ['message.visitor', 'hello'],
    ]
    expect(await listed()).toEqual(before)
    expect(await found('early')).toBe(0)
    await append(cores.other, visitor, 'a', 6, 'late', { done: true })
    await answer(cores.other, visitor, 'agent')
    await flushFeed(cores.other)
    await searchIndexOf(cores.other).flush()
    const after = [...before, ['message.bot', 'early late'], ['message.agent', 'agent']]
    expect(await listed()).toEqual(after)
    expect(await found('early late')).toBe(1)
  })

  it.each([
    ['while it grows', false],
    ['when its delivery to a hook waits', true],
  ])('leaves its text nowhere if it is withdrawn %s', async (_, hasEnded) => {
    const scene = await newHookScene(cores)
    const { secret, visitor } = scene
    const { hookId } = await scene.hooks.createHook({ destinationUrl, eventTypes: ['message.bot'] })
    await append(cores.core, visitor, 'a', 0, `${secret} and `)
    await append(cores.other, visitor, 'a', secret.length + 5, secret)
    const end = { done: true, quickReplies: [secret] }
    if (hasEnded) {
      await append(cores.core, visitor, 'a', secret.length * 2 + 5, '', end)
      const claimed = await scene.claim(hookId)
      expect(Buffer.from(claimed.body).toString()).toContain(secret)
      await scene.finish(claimed, 503, `I refuse ${secret}`)
    }
    await scene.withdraw((await historyOf(visitor))[0]!.sequence)
    for (const core of cores.cores) {
      const late = await append(core, visitor, 'a', secret.length * 2 + 5, ` ${secret}`)
      expect(late.state).toBe(hasEnded ? 'completed' : 'interrupted')
    }
    cores.advance(60)
    await Promise.all(cores.cores.map((core) => flushFeed(core)))
    const due = (await claimDue(cores.core)).filter(({ destination }) => destination === hookId)
    for (const { body } of due) expect(Buffer.from(body).toString()).not.toContain(secret)
    await searchIndexOf(cores.core).flush()
    const { workspaceId } = visitor
    expect((await searchTexts(cores.core, { workspaceId, query: secret, kinds: ['message'] })).results).toEqual([])
    const exported: string[] = []
    for await (const line of exportVisitor(cores.core, await visitorOf(cores, visitor))) exported.push(line)
    expect(exported.join()).toContain('"redactedAt"')
    expect(exported.join()).not.toContain(secret)
    // Wake-ups are removed after half a minute, search entries by the follower of the logs.
    const places = await placesOfTexts(cores, [secret])
    expect(places.filter((place) => !/^(wakeups|searchEntries)/.test(place))).toEqual([])
  })
})

it('the export of a visitor says how each answer has ended', async () => {
  const visitor = await cores.newVisitor()
  await append(cores.core, visitor, 'completed', 0, 'one', { done: true })
  await stopAnswer(cores.core, visitor, (await append(cores.core, visitor, 'stopped', 0, 'two')).messageId)
  await append(cores.core, visitor, 'interrupted', 0, 'three')
  await stopBots(cores.core, visitor.conversationId, undefined)
  const answers: [string, string][] = []
  for await (const line of exportVisitor(cores.core, await visitorOf(cores, visitor))) {
    const { kind, type, message, answer: state } = JSON.parse(line)
    if (kind === 'event' && type === 'message.received') answers.push([message.body, state])
  }
  expect(answers).toEqual([
    ['one', 'completed'],
    ['two', 'stopped'],
    ['three', 'interrupted'],
  ])
})
