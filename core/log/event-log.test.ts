import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { newId } from '../ids.ts'
import { type LogEvent, operationKeys } from '../log-event.ts'
import { logCore } from '../test/core-with.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { type EventDraft, logOf } from './event-log.ts'
import { createEventStore, type EventStore } from './event-store.ts'

const database = await openTestDatabase(testDatabase())
const store = createEventStore(database.collections)

function newLog(onAppended: (event: LogEvent) => void = () => {}, over: EventStore = store) {
  const core = logCore(over)
  core.bus.on('appended', onAppended)
  return logOf(core)
}

function draft(conversationId: string, operation: string, body = operation): EventDraft {
  return {
    conversationId,
    type: 'message.accepted',
    operationKey: operationKeys.visitorMessage('ses_1', operation),
    inputHash: body,
    message: { messageId: newId('msg'), author: { kind: 'visitor' }, body, contentType: 'text', state: 'queued' },
  }
}

const readAll = (conversationId: string) => store.readAfter({ conversationId, after: 0 }, 10_000, { transient: true })

describe('the event log', () => {
  it('assigns sequences from 1 in the order of the calls', async () => {
    const conversationId = newId('cnv')
    const log = newLog()
    const appended = await Promise.all(['a', 'b', 'c'].map((operation) => log.append(draft(conversationId, operation))))
    expect(appended.map(({ event }) => event.sequence)).toEqual([1, 2, 3])
    expect((await readAll(conversationId)).map(({ message }) => message?.body)).toEqual(['a', 'b', 'c'])
  })

  it('returns the first event for a repeated operation, also in another process', async () => {
    const conversationId = newId('cnv')
    const first = await newLog().append(draft(conversationId, 'once'))
    const again = await newLog().append(draft(conversationId, 'once'))
    expect(again.replayed).toBe(true)
    expect(again.event).toEqual(first.event)
    expect(await readAll(conversationId)).toHaveLength(1)
  })

  it('rejects a used operation key with other input', async () => {
    const conversationId = newId('cnv')
    const log = newLog()
    await log.append(draft(conversationId, 'key', 'one text'))
    await expect(log.append(draft(conversationId, 'key', 'another text'))).rejects.toMatchObject({
      code: 'IdempotencyConflict',
    })
  })

  it('loses and duplicates no event when three writers share one conversation', async () => {
    const conversationId = newId('cnv')
    const logs = [newLog(), newLog(), newLog()]
    const appended = await Promise.all(
      Array.from({ length: 60 }, (_, index) => logs[index % 3]!.append(draft(conversationId, `op${index}`))),
    )
    const sequences = appended.map(({ event }) => event.sequence).sort((a, b) => a - b)
    expect(sequences).toEqual(Array.from({ length: 60 }, (_, index) => index + 1))
    expect((await readAll(conversationId)).map(({ sequence }) => sequence)).toEqual(sequences)
  })

  it('closes a conversation that another process has just reopened, and closes it once', async () => {
    const conversationId = newId('cnv')
    const [log, other] = [newLog(), newLog()]
    const closing: EventDraft = { conversationId, type: 'conversation.closed' }
    await log.append(draft(conversationId, 'first'))
    expect(await log.append(closing)).toMatchObject({ replayed: false })
    await other.append(draft(conversationId, 'second'))
    expect(await log.append(closing)).toMatchObject({ replayed: false, event: { sequence: 5, closed: true } })
    expect(await other.append(closing)).toMatchObject({ replayed: true })
    const types = (await readAll(conversationId)).map(({ type }) => type)
    expect(types.slice(1)).toEqual([closing.type, 'conversation.reopened', 'message.accepted', closing.type])
  })

  it('makes an event visible to readers only after all events with lower sequences', async () => {
    const conversationId = newId('cnv')
    const logs = [newLog(), newLog()]
    let done = false
    const writing = Promise.all(
      Array.from({ length: 80 }, (_, index) => logs[index % 2]!.append(draft(conversationId, `op${index % 60}`))),
    ).finally(() => {
      done = true
    })
    while (!done) {
      const sequences = (await readAll(conversationId)).map(({ sequence }) => sequence)
      expect(sequences).toEqual(sequences.map((_, index) => index + 1))
    }
    await writing
  })

  it('stores each operation once and in order for any mix of writers, conversations and repeated operations', async () => {
    const sends = fc.array(fc.record({ writer: fc.nat(2), conversation: fc.nat(2), operation: fc.nat(6) }), {
      minLength: 1,
      maxLength: 40,
    })
    await forAllAsync([sends], runs(100, 20), async (plan) => {
      const logs = [newLog(), newLog(), newLog()]
      const conversations = [newId('cnv'), newId('cnv'), newId('cnv')]
      const answers = await Promise.all(
        plan.map(({ writer, conversation, operation }) =>
          logs[writer]!.append(draft(conversations[conversation]!, `op${operation}`)),
        ),
      )
      for (const [index, conversationId] of conversations.entries()) {
        const events = await readAll(conversationId)
        const operations = new Set(
          plan.filter(({ conversation }) => conversation === index).map(({ operation }) => operation),
        )
        expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, place) => place + 1))
        expect(events).toHaveLength(operations.size)
        for (const [place, { conversation, operation }] of plan.entries()) {
          if (conversation !== index) continue
          const kept = events.find(({ operationKey }) => operationKey === `ses_1 op${operation}`)
          expect(answers[place]?.event).toEqual(kept)
        }
      }
    })
  })

  it('rejects as unavailable when the store fails after the write, and a repeat returns the event', async () => {
    const conversationId = newId('cnv')
    let failing = true
    const broken: EventStore = {
      ...store,
      async insert(events) {
        const outcomes = await store.insert(events)
        if (failing) throw new Error('connection lost after the write')
        return outcomes
      },
    }
    const log = newLog(undefined, broken)
    await expect(log.append(draft(conversationId, 'lost'))).rejects.toMatchObject({
      code: 'ServiceUnavailable',
    })
    failing = false
    expect((await log.append(draft(conversationId, 'lost'))).replayed).toBe(true)
    expect(await readAll(conversationId)).toHaveLength(1)
  })

  it('writes events of 64 conversations in one batch if they were appended in one turn of the event loop', async () => {
    const batches: number[] = []
    const counting: EventStore = {
      ...store,
      insert(events) {
        batches.push(events.length)
        expect(new Set(events.map(({ conversationId }) => conversationId)).size).toBe(events.length)
        return store.insert(events)
      },
    }
    const log = newLog(undefined, counting)
    await Promise.all(Array.from({ length: 64 }, (_, index) => log.append(draft(newId('cnv'), `op${index}`))))
    expect(batches).toEqual([64])
  })

  it('rejects an event when its queue is full', async () => {
    const log = newLog(undefined, { ...store, insert: () => new Promise(() => {}) })
    const conversationId = newId('cnv')
    const appended = Array.from({ length: 20_000 }, (_, index) => log.append(draft(conversationId, `op${index}`)))
    await expect(log.append(draft(conversationId, 'late'))).rejects.toMatchObject({
      code: 'ServiceUnavailable',
    })
    expect(await Promise.race([...appended, 'waiting'])).toBe('waiting')
  })

  it('has at most two batches in flight, and never two events of one conversation', async () => {
    const arrivals = fc.array(fc.record({ conversation: fc.nat(5), later: fc.boolean() }), { maxLength: 40 })
    await forAllAsync([arrivals], runs(100, 20), async (drafts) => {
      const ids = Array.from({ length: 6 }, () => newId('cnv'))
      const inFlight: string[][] = []
      let most = 0
      const watched: EventStore = {
        ...store,
        async insert(events) {
          const batch = events.map(({ conversationId }) => conversationId)
          inFlight.push(batch)
          most = Math.max(most, inFlight.length)
          expect(new Set(inFlight.flat()).size).toBe(inFlight.flat().length)
          const outcomes = await store.insert(events)
          inFlight.splice(inFlight.indexOf(batch), 1)
          return outcomes
        },
      }
      const log = newLog(() => {}, watched)
      const appended = []
      for (const [index, { conversation, later }] of drafts.entries()) {
        if (later) await new Promise(setImmediate)
        appended.push(log.append(draft(ids[conversation]!, String(index))))
      }
      await log.drain()
      expect(inFlight).toEqual([])
      expect(most).toBeLessThanOrEqual(2)
      const events = (await Promise.all(appended)).map(({ event }) => event)
      for (const id of ids) {
        const own = events.filter(({ conversationId }) => conversationId === id)
        expect(own.map(({ sequence }) => sequence)).toEqual(own.map((_, index) => index + 1))
      }
    })
  })

  it('writes to one conversation while the batch of another conversation is slow', async () => {
    const [slow, quick] = [newId('cnv'), newId('cnv')]
    const gate = Promise.withResolvers<void>()
    const held: EventStore = {
      ...store,
      async insert(events) {
        if (events.some(({ conversationId }) => conversationId === slow)) await gate.promise
        return store.insert(events)
      },
    }
    const log = newLog(() => {}, held)
    const first = log.append(draft(slow, 'first'))
    await new Promise(setImmediate)
    const second = log.append(draft(slow, 'second'))
    expect((await log.append(draft(quick, 'beside'))).event.sequence).toBe(1)
    gate.resolve()
    expect((await Promise.all([first, second])).map(({ event }) => event.sequence)).toEqual([1, 2])
  })
})
