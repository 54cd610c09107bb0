import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runs } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { createBus } from '../bus.ts'
import type { Database } from '../database/database.ts'
import { newId } from '../ids.ts'
import { createEventLog, type EventLog } from '../log/event-log.ts'
import { createEventStore, type EventStore } from '../log/event-store.ts'
import { createLogHeads } from '../log/log-heads.ts'
import { type LogEvent, operationKeys } from '../log-event.ts'
import type { Session } from '../sessions/model.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import type { EncodedEvent } from './model.ts'
import { createRecentEvents } from './recent-events.ts'
import { createReplayWindow, type StartPoint } from './replay-window.ts'
import type { StreamSubscription, SubscriptionSink } from './session-streams.ts'
import { createStreamSubscriptions } from './stream-subscriptions.ts'

const { uri, name } = testDatabase()
const logger = pino({ level: 'silent' })
let database: Database
let store: EventStore

beforeAll(async () => {
  database = await openTestDatabase({ uri, name })
  store = createEventStore(database.collections)
})
afterAll(() => database.close())

const epoch = 'e1'
const windowEvents = 20

/** Creates the streams of one core, and a second writer whose wake-ups may get lost. */
function createStreams({
  now = Date.now,
  maxEvents = windowEvents,
  isKnownEpoch = async () => false,
}: {
  now?: () => number
  maxEvents?: number
  isKnownEpoch?: (epoch: string) => Promise<boolean>
} = {}) {
  const bus = createBus()
  const subscriptions = createStreamSubscriptions({
    events: store,
    bus,
    replayWindow: createReplayWindow(store, createRecentEvents(bus, now), { maxEvents, maxAge: 3600 }, now),
    isKnownEpoch,
    logger,
  })
  const onAppended = (event: LogEvent) => void bus.emit('appended', event)
  const local = createEventLog({ store, heads: createLogHeads(store), now, onAppended })
  const remote = createEventLog({ store, heads: createLogHeads(store), now, onAppended() {} })
  return { subscriptions, bus, local, remote }
}

interface Reader {
  events: EncodedEvent[]
  opened: number | undefined
  ended: boolean
  paused: number
  subscription: StreamSubscription | undefined
}

async function read(
  streams: ReturnType<typeof createStreams>,
  conversationId: string,
  start: StartPoint,
  sessionId = 'ses_1',
): Promise<Reader> {
  const reader: Reader = { events: [], opened: undefined, ended: false, paused: 0, subscription: undefined }
  const sink: SubscriptionSink = {
    opened: (_id, _session, { sequence }) => {
      reader.opened = sequence
    },
    event: (_ids, event) => void reader.events.push(event),
    replayed: (_id, events) => void reader.events.push(...events),
    advanced() {},
    availability() {},
    paused: () => {
      reader.paused += 1
    },
    closed: () => {
      reader.ended = true
    },
  }
  const session = { sessionId, conversationId } as Session
  reader.subscription = await streams.subscriptions.open({ id: 1, sink, session, epoch, start })
  return reader
}

async function append(log: EventLog, conversationId: string, body: string) {
  const message = {
    messageId: newId('msg'),
    author: { kind: 'agent' as const },
    body,
    contentType: 'text' as const,
    state: 'sent' as const,
  }
  const { event } = await log.append({
    conversationId,
    type: 'message.received',
    operationKey: operationKeys.agentMessage(body),
    inputHash: body,
    message,
  })
  return event
}

const sequencesOf = ({ events }: Reader) => events.map(({ sequence }) => sequence)
const upTo = (last: number, first = 1) =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index)

describe('a stream', () => {
  it('starts at the end of the log if the request has no position', async () => {
    const streams = createStreams()
    const conversationId = newId('cnv')
    await append(streams.local, conversationId, 'before')
    const reader = await read(streams, conversationId, {})
    await append(streams.local, conversationId, 'after')
    await until('the event', () => reader.events.length === 1)
    expect(reader.events.map(({ id }) => id)).toEqual(['e1-2'])
  })

  it('starts at the greater of `afterSequence` and the sequence in `lastEventId`', async () => {
    const streams = createStreams()
    const conversationId = newId('cnv')
    for (const body of ['a', 'b', 'c', 'd']) await append(streams.local, conversationId, body)
    expect((await read(streams, conversationId, { afterSequence: 1, lastEventId: 'e1-3' })).opened).toBe(3)
    expect((await read(streams, conversationId, { afterSequence: 3, lastEventId: 'e1-1' })).opened).toBe(3)
  })

  it.each([
    ['of another epoch', { lastEventId: 'other-1' }, 'epoch_changed'],
    ['with a malformed id', { lastEventId: 'nonsense' }, 'epoch_changed'],
    ['whose number is too large', { lastEventId: 'e1-99999999999' }, 'epoch_changed'],
    ['ahead of the log', { afterSequence: 99 }, 'position_unknown'],
    ['whose event id is ahead of the log', { lastEventId: 'e1-99' }, 'position_unknown'],
  ])('at a position %s gets one reset and ends', async (_, start, reason) => {
    const streams = createStreams()
    const conversationId = newId('cnv')
    await append(streams.local, conversationId, 'a')
    const reader = await read(streams, conversationId, start)
    expect(reader.ended).toBe(true)
    expect(reader.events).toHaveLength(1)
    expect(reader.events[0]).toMatchObject({ id: 'e1-1', type: 'replay.reset.required' })
    expect(JSON.parse(reader.events[0]!.json).data).toEqual({ reason, reauthenticationRequired: false })
  })

  it('at a position of another log that exists gets a reset that requires authentication', async () => {
    const streams = createStreams({ isKnownEpoch: async (epoch) => epoch === 'other' })
    const conversationId = newId('cnv')
    await append(streams.local, conversationId, 'a')
    const reader = await read(streams, conversationId, { lastEventId: 'other-1' })
    expect(JSON.parse(reader.events[0]!.json).data).toEqual({ reason: 'epoch_changed', reauthenticationRequired: true })
  })

  it('replays as many events as the window allows, and requires a reset if one more was missed', async () => {
    const streams = createStreams()
    const conversationId = newId('cnv')
    for (let count = 0; count < windowEvents + 1; count += 1) await append(streams.local, conversationId, `m${count}`)
    const within = await read(streams, conversationId, { afterSequence: 1 })
    await until('the replay', () => within.events.length === windowEvents)
    expect(sequencesOf(within)).toEqual(upTo(windowEvents + 1, 2))
    const outside = await read(streams, conversationId, { afterSequence: 0 })
    expect(outside.events.map(({ type }) => type)).toEqual(['replay.reset.required'])
  })

  it('requires a reset when the first missed event is older than the window', async () => {
    const conversationId = newId('cnv')
    await append(createStreams({ now: () => Date.now() - 3601_000 }).local, conversationId, 'old')
    const reader = await read(createStreams(), conversationId, { afterSequence: 0 })
    expect(reader.events.map(({ type }) => type)).toEqual(['replay.reset.required'])
    expect((await read(createStreams(), conversationId, { afterSequence: 1 })).ended).toBe(false)
  })

  it('sends the same bytes live and in a replay', async () => {
    const streams = createStreams()
    const conversationId = newId('cnv')
    const live = await read(streams, conversationId, { afterSequence: 0 })
    await append(streams.local, conversationId, 'line\r\nid: forged\u2028')
    await until('the live event', () => live.events.length === 1)
    const replayed = await read(streams, conversationId, { afterSequence: 0 })
    await until('the replayed event', () => replayed.events.length === 1)
    expect(replayed.events).toEqual(live.events)
    expect(live.events[0]?.json).not.toMatch(/[\r\n]/)
  })

  it('pauses a replay after 64 KiB until it is resumed', async () => {
    const streams = createStreams({ maxEvents: 500 })
    const conversationId = newId('cnv')
    const big = 'x'.repeat(1000)
    for (let count = 0; count < 150; count += 1) await append(streams.local, conversationId, `${big}${count}`)
    const reader = await read(streams, conversationId, { afterSequence: 0 })
    await until('the pause', () => reader.paused === 1)
    expect(sequencesOf(reader).length).toBeLessThan(70)
    expect(sequencesOf(reader)).toEqual(upTo(sequencesOf(reader).length))
    await append(streams.local, conversationId, 'while it waits')
    while (reader.events.length < 151) {
      const seen = reader.events.length
      streams.subscriptions.resume(reader.subscription!)
      await until('the next part', () => reader.events.length > seen)
    }
    expect(sequencesOf(reader)).toEqual(upTo(151))
  })

  it('receives session events only of its own session', async () => {
    const streams = createStreams()
    const conversationId = newId('cnv')
    const own = await read(streams, conversationId, {}, 'ses_own')
    const other = await read(streams, conversationId, {}, 'ses_other')
    await streams.local.append({
      conversationId,
      type: 'session.revoked',
      sessionId: 'ses_own',
      operationKey: operationKeys.session('ses_own', 'session.revoked'),
      inputHash: '',
    })
    await append(streams.local, conversationId, 'later')
    await until('the end', () => own.ended && other.events.length === 1)
    expect(own.events.map(({ type }) => type)).toEqual(['session.revoked'])
    expect(other.events.map(({ type }) => type)).toEqual(['message.received'])
  })

  it('receives every event once and in order from any start and any writer, even if wake-ups are lost', async () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('write' as const),
        by: fc.constantFrom('local' as const, 'remote' as const),
        hasHint: fc.boolean(),
      }),
      fc.record({ kind: fc.constant('join' as const), back: fc.nat(5) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 18 }), async (steps) => {
        const streams = createStreams()
        const conversationId = newId('cnv')
        const joined: { reader: Promise<Reader>; start: number }[] = []
        const writes: Promise<unknown>[] = []
        let written = 0
        for (const [index, planned] of steps.entries()) {
          if (planned.kind === 'join') {
            const start = Math.max(0, written - planned.back)
            joined.push({ reader: read(streams, conversationId, { afterSequence: start }), start })
          } else {
            const event = await append(streams[planned.by], conversationId, `m${index}`)
            written = event.sequence
            if (planned.by === 'remote' && planned.hasHint)
              streams.bus.emit('advanced', conversationId, { sequence: event.sequence, closed: false })
          }
        }
        await Promise.all(writes)
        const readers = await Promise.all(joined.map(({ reader }) => reader))
        streams.bus.emit('gap')
        for (const [index, reader] of readers.entries()) {
          const expected = upTo(written, joined[index]!.start + 1)
          await until('the last event', () => reader.events.length >= expected.length)
          expect(sequencesOf(reader)).toEqual(expected)
        }
      }),
      runs(80, 20),
    )
  })
})
