import { create } from '@bufbuild/protobuf'
import { beforeEach, describe, expect, it } from 'vitest'
import { WatchEventsRequestSchema, type WatchEventsResponse } from '#proto/messaging/v1/messaging_pb.js'
import { createBus } from '../bus.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { type SubscriptionSink, streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import { bareCore } from '../test/core-with.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { watchEvents } from './watch-events.ts'

const mebi = 2 ** 20
const json = 'x'.repeat(mebi)
let sink: SubscriptionSink
let frames: AsyncGenerator<WatchEventsResponse>

/** A fake core with one subscription. The test calls the sink of that subscription. */
const core = bareCore({
  db: { conversations: { find: () => ({ toArray: async () => [] }) } },
  bus: createBus(),
  now: Date.now,
})
const installation = { availability: { mode: 'online' } }
const session = { sessionId: 'ses_1', conversationId: 'cnv_1' }
visitorAccessOf.set(core, { authorize: async () => ({ session, installation }) } as never)
streamSubscriptionsOf.set(core, {
  async open(request: { sink: SubscriptionSink }) {
    sink = request.sink
    sink.opened(1, { sessionId: 'ses_1' } as never, { epoch: 'e1', sequence: 0 })
    return {}
  },
  close() {},
} as never)
wakeupsOf.set(core, { isCurrent: () => true } as never)

beforeEach(async () => {
  const value = { subscriptionId: 1, credentials: {} }
  const subscribe = { case: 'subscribe' as const, value }
  async function* commands() {
    yield create(WatchEventsRequestSchema, { commands: [{ command: subscribe }] })
    await new Promise(() => {})
  }
  frames = watchEvents(core, commands(), new AbortController().signal)
  const first = async () => ((await frames.next()).value as WatchEventsResponse).frames.map(({ frame }) => frame.case)
  expect(await first()).toEqual(['ready'])
  expect(await first()).toEqual(['opened'])
})

const send = (sequence: number) => sink.event([1], { id: `e1-${sequence}`, sequence, type: 'message.received', json })

describe('the event stream of a gateway', () => {
  const events = [
    { id: 'e1-1', sequence: 1, type: 'message.received', json: '{"a":"ü"}' },
    { id: 'e1-3', sequence: 3, type: 'agent.assigned', json: '{}' },
  ]

  it('sends replayed events together', async () => {
    sink.replayed(1, events)
    const [frame] = (await frames.next()).value!.frames
    const text = Buffer.from(
      events.map(({ id, type, json }) => `id: ${id}\nevent: ${type}\ndata: ${json}\n\n`).join(''),
    )
    expect(frame?.frame).toMatchObject({ case: 'replayed', value: { subscriptionId: 1, sequence: 3, events: 2, text } })
  })

  /** Reads messages until they had `count` events. Returns the sequences of the events. */
  async function read(count: number): Promise<number[]> {
    const received: number[] = []
    while (received.length < count) {
      const { value, done } = await frames.next()
      if (done) throw new Error(`the stream ended after ${received.length} events`)
      for (const { frame } of value.frames) if (frame.case === 'event') received.push(frame.value.sequence)
    }
    return received
  }

  it('stays open after more than 64 MiB in total if the gateway keeps reading', async () => {
    for (let sequence = 1; sequence <= 150; sequence += 1) {
      for (let count = 0; count < 1001; count += 1) sink.advanced([1], sequence)
      send(sequence)
      expect(await read(1)).toEqual([sequence])
    }
  })

  it('ends when more than 64 MiB are unread; data that was read does not count', async () => {
    for (let sequence = 1; sequence <= 60; sequence += 1) send(sequence)
    expect(await read(60)).toHaveLength(60)
    for (let sequence = 61; sequence <= 123; sequence += 1) send(sequence)
    expect(await read(63)).toHaveLength(63)
    for (let sequence = 125; sequence <= 189; sequence += 1) send(sequence)
    expect((await frames.next()).done).toBe(true)
  })

  it('sends many small frames in messages of about 64 KiB, in order', async () => {
    for (let sequence = 1; sequence <= 2000; sequence += 1)
      sink.event([1], { id: `e1-${sequence}`, sequence, type: 'message.received', json: json.slice(0, 1024) })
    const received: number[] = []
    while (received.length < 2000) {
      const { frames: sent } = (await frames.next()).value as WatchEventsResponse
      expect(sent.length).toBeLessThan(64)
      for (const { frame } of sent) if (frame.case === 'event') received.push(frame.value.sequence)
    }
    expect(received).toEqual(Array.from({ length: 2000 }, (_, index) => index + 1))
  })
})
