import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'

const database = testDatabase()
let cores: TestCores
let here: TestCores['core']
let there: TestCores['core']

beforeAll(async () => {
  cores = await startTestCores(database, { count: 2 })
  here = cores.core
  there = cores.cores[1]!
})
afterAll(() => cores.stop())

/** A subject that no other test has. */
const newSubject = () => `customer-${randomUUID()}`

describe('the first identification of a session', () => {
  it('keeps the session and its conversation, and says who it is to operators', async () => {
    const session = await cores.newSession()
    const sub = newSubject()
    const stream = await cores.openStream(session, there)
    const identified = await cores.identify(session, cores.sign({ sub, name: 'Ada', ctx: { plan: 'pro', seats: 3 } }))
    expect(identified).toMatchObject({
      sessionId: session.sessionId,
      conversationId: session.conversationId,
      continuityState: 'new',
      identityState: 'verified',
      displayName: 'Ada',
    })
    await until('the event', () => stream.types.length > 0)
    expect(stream.types).toEqual(['session.identified'])
    expect(JSON.parse(stream.json[0]!).data).toEqual({})
    expect((await here.sessions.find(session.sessionId)).identity).toMatchObject({
      externalSubject: sub,
      displayName: 'Ada',
      context: [
        ['plan', 'pro'],
        ['seats', 3],
      ],
    })
  })

  it('is not told to another session of the same subject', async () => {
    const sub = newSubject()
    const one = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    const stream = await cores.openStream(one)
    await until('its own event', () => stream.types.length === 1)
    const other = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    await cores.send(other, 'hello')
    await until('the message', () => stream.types.length === 2)
    expect(stream.types).toEqual(['session.identified', 'message.accepted'])
  })

  it('continues the conversation that the subject has open, if the session has written nothing', async () => {
    const sub = newSubject()
    const first = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    await cores.send(first, 'from the laptop')
    const phone = await cores.newSession(there)
    const second = await cores.identify(phone, cores.sign({ sub }), { core: there })
    expect(second).toMatchObject({
      sessionId: phone.sessionId,
      conversationId: first.conversationId,
      continuityState: 'continued',
      replay: { epoch: first.replay.epoch },
    })
    await cores.send(second, 'from the phone', { core: there })
    expect(await cores.history(first)).toEqual(['from the laptop', 'from the phone'])
    expect(await cores.history(second, there)).toEqual(['from the laptop', 'from the phone'])
  })

  it('tells the streams of a session that it moves to begin anew, on every core, and these then follow the other log', async () => {
    const sub = newSubject()
    const first = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    const phone = await cores.newSession()
    const streams = [await cores.openStream(phone, here), await cores.openStream(phone, there)]
    await cores.identify(phone, cores.sign({ sub }))
    for (const stream of streams) {
      await until('the end of the stream', () => stream.ended)
      expect(stream.types).toEqual(['replay.reset.required'])
      expect(JSON.parse(stream.json[0]!).data).toEqual({ reason: 'epoch_changed', reauthenticationRequired: false })
    }
    // The old grant is still good.
    const again = [await cores.openStream(phone, here), await cores.openStream(phone, there)]
    await cores.send(first, 'hello')
    for (const stream of again) {
      await until('the message', () => stream.types.includes('message.accepted'))
      expect(stream.ended).toBe(false)
    }
  })

  it('of a session that has written makes its conversation the one that the subject continues', async () => {
    const sub = newSubject()
    const before = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    await cores.send(before, 'last week')
    const session = await cores.newSession()
    await cores.send(session, 'where is my order?')
    const identified = await cores.identify(session, cores.sign({ sub }))
    expect(identified.conversationId).toBe(session.conversationId)
    expect(await cores.history(identified)).toEqual(['where is my order?'])
    const next = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    expect(next.conversationId).toBe(session.conversationId)
    // A refresh does not take it back.
    await cores.identify(before, cores.sign({ sub }))
    const later = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    expect(later.conversationId).toBe(session.conversationId)
  })

  it('begins anew where the conversation of the subject has been closed', async () => {
    const sub = newSubject()
    const before = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    await cores.send(before, 'solved')
    await here.conversationDesk.close(before.conversationId, undefined)
    const session = await cores.newSession()
    const next = await cores.identify(session, cores.sign({ sub }))
    expect(next).toMatchObject({ conversationId: session.conversationId, continuityState: 'new' })
    const later = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    expect(later.conversationId).toBe(session.conversationId)
  })

  it('takes the sessions along that wait for the subject in an empty conversation', async () => {
    const sub = newSubject()
    const waiting = await cores.identify(await cores.newSession(there), cores.sign({ sub }), { core: there })
    const writing = await cores.newSession()
    await cores.send(writing, 'hello')
    await cores.identify(writing, cores.sign({ sub }))
    expect(await cores.history(waiting, there)).toEqual(['hello'])
  })

  it('on many devices at the same moment leads to one conversation', async () => {
    for (let round = 0; round < 5; round += 1) {
      const sub = newSubject()
      const sessions = await Promise.all(Array.from({ length: 6 }, () => cores.newSession()))
      const identified = await Promise.all(
        sessions.map((session, index) =>
          cores.identify(session, cores.sign({ sub }), { core: cores.cores[index % 2]! }),
        ),
      )
      const [one] = identified
      await cores.send(one!, 'to all')
      for (const content of identified) expect(await cores.history(content)).toEqual(['to all'])
    }
  })
})

describe('a message on its way while its session is moved', () => {
  it('is in exactly one conversation, the one its answer names, and is seen where the session is', async () => {
    for (let round = 0; round < 12; round += 1) {
      const sub = newSubject()
      const first = await cores.identify(await cores.newSession(), cores.sign({ sub }))
      await cores.send(first, 'before')
      const session = await cores.newSession(there)
      const key = randomUUID()
      const sends = () =>
        cores.cores.map((core) => cores.send(session, 'in flight', { core, key }).then(({ event }) => event))
      const [identified, ...events] = await Promise.all([
        cores.identify(session, cores.sign({ sub })),
        ...sends(),
        ...sends(),
      ])
      const repeat = (await cores.send(session, 'in flight', { key })).event
      for (const event of events) expect(event).toEqual(repeat)
      expect((await here.sessions.find(session.sessionId)).conversationId).toBe(repeat.conversationId)
      expect(identified.conversationId).toBe(repeat.conversationId)
      const seen = await cores.history(session)
      expect(seen.filter((body) => body === 'in flight')).toHaveLength(1)
      const elsewhere = [first.conversationId, session.conversationId].filter((id) => id !== repeat.conversationId)
      for (const id of elsewhere) {
        const { messages } = await here.messages.list(id, {})
        expect(messages.filter(({ message }) => message?.body === 'in flight')).toEqual([])
      }
    }
  })
})

describe('the same subject again', () => {
  it('gets a fresh grant for the same session, and what is known of it is replaced', async () => {
    const sub = newSubject()
    const session = await cores.identify(
      await cores.newSession(),
      cores.sign({ sub, name: 'Ada', ctx: { plan: 'free', trial: true } }),
    )
    cores.advance(60)
    const again = await cores.identify(session, cores.sign({ sub, name: 'Ada L.', ctx: { plan: 'pro' } }))
    expect(again).toMatchObject({
      sessionId: session.sessionId,
      conversationId: session.conversationId,
      renewalToken: session.renewalToken,
      displayName: 'Ada L.',
      continuityState: 'continued',
    })
    expect(again.expiresAt.getTime()).toBeGreaterThanOrEqual(session.expiresAt.getTime() + 59_000)
    const { identity } = await here.sessions.find(session.sessionId)
    expect(identity).toMatchObject({ displayName: 'Ada L.', context: [['plan', 'pro']] })
    const stream = await cores.openStream(again)
    await until('the events', () => stream.types.length > 0)
    expect(stream.types).toEqual(['session.identified'])
  })
})
