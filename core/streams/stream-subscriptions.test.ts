import fc from 'fast-check'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { createBus } from '../bus.ts'
import { newId } from '../ids.ts'
import { logOf } from '../log/event-log.ts'
import { createEventStore } from '../log/event-store.ts'
import { operationKeys } from '../log-event.ts'
import type { Session } from '../sessions/model.ts'
import { logCore } from '../test/core-with.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { streamCore } from '../test/stream-subscriptions.ts'
import type { EncodedEvent } from './model.ts'
import { replayWindowOf, type StartPoint } from './replay-window.ts'
import { type StreamSubscription, type SubscriptionSink, streamSubscriptionsOf } from './stream-subscriptions.ts'

const logger = pino({ level: 'silent' })
const database = await openTestDatabase(testDatabase())
const store = createEventStore(database.collections)

const epoch = 'e1'
const windowEvents = 20

/** Creates the streams of one core, and a second writer whose wake-ups may get lost. */
function createStreams({
  now = Date.now,
  maxEvents = windowEvents,
  epochs = [],
}: {
  now?: () => number
  maxEvents?: number
  epochs?: string[]
} = {}) {
  const bus = createBus()
  const config = { REPLAY_WINDOW_EVENTS: maxEvents, REPLAY_WINDOW_SECONDS: 3600 }
  const local = logCore(store, { bus, config, now })
  const replayWindow = replayWindowOf(local)
  const subscriptions = streamSubscriptionsOf(streamCore({ events: store, replayWindow, epochs }, { bus, logger }))
  return { subscriptions, bus, local: logOf(local), remote: logOf(logCore(store, { now })) }
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

async function append(log: ReturnType<typeof logOf>, conversationId: string, body: string) {
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
  it('at a position of another log that exists gets a reset that requires authentication', async () => {
    const streams = createStreams({ epochs: ['other'] })
    const conversationId = newId('cnv')
    await append(streams.local, conversationId, 'a')
    const reader = await read(streams, conversationId, { lastEventId: 'other-1' })
    expect(JSON.parse(reader.events[0]!.json).data).toEqual({ reason: 'epoch_changed', reauthenticationRequired: true })
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

  it('receives every event once and in order from any start and any writer, even if wake-ups are lost', async () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('write' as const),
        by: fc.constantFrom('local' as const, 'remote' as const),
        hasHint: fc.boolean(),
      }),
      fc.record({ kind: fc.constant('join' as const), back: fc.nat(5) }),
    )
    await forAllAsync([fc.array(step, { minLength: 3, maxLength: 18 })], runs(80, 20), async (steps) => {
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
    })
  })
})
