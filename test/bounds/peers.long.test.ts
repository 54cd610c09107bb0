import { create } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { WatchEventsRequestSchema } from '#proto/messaging/v1/messaging_pb.js'
import { createBus } from '../../core/bus.ts'
import { createSharedBytes } from '../../core/concurrency/shared-bytes.ts'
import type { RunningCore } from '../../core/context.ts'
import { visitorPresenceOf } from '../../core/conversations/visitor-presence.ts'
import { unreadFramesOf, watchEvents } from '../../core/rpc/watch-events.ts'
import { visitorAccessOf } from '../../core/sessions/visitor-access.ts'
import { type SubscriptionSink, streamSubscriptionsOf } from '../../core/streams/stream-subscriptions.ts'
import { bareCore } from '../../core/test/core-with.ts'
import { wakeupsOf } from '../../core/wakeups/wakeups.ts'
import { forAll } from '../support/for-all.ts'

it('shared memory never exceeds its maximum by more than the fair shares, and all of it is given back', () => {
  const step = fc.record({ holder: fc.nat(4), bytes: fc.integer({ min: 1, max: 400 }), leaves: fc.boolean() })
  forAll([fc.array(step, { maxLength: 200 })], {}, (steps) => {
    const shared = createSharedBytes(1_000)
    const holders = Array.from({ length: 5 }, () => shared.join(600))
    const own = holders.map(() => 0)
    for (const { holder, bytes, leaves } of steps) {
      if (holders[holder]!.take(bytes)) own[holder]! += bytes
      if (leaves && own[holder]! > 0) {
        holders[holder]!.giveBack(own[holder]!)
        own[holder] = 0
      }
      expect(Math.max(...own)).toBeLessThanOrEqual(600)
      // Those that hold no more than their share never lose it to others.
      expect(own.reduce((sum, each) => sum + each)).toBeLessThanOrEqual(2_000)
    }
    for (const each of holders) each.leave()
    const next = shared.join(1_000)
    expect(next.take(1_000)).toBe(true)
    expect(next.take(1)).toBe(false)
  })
})

/** Starts the stream of a gateway whose commands the test makes, and which reads nothing. */
function startGateway(authorize: () => Promise<unknown>) {
  const closed: unknown[] = []
  let opened = 0
  let sink: SubscriptionSink | undefined
  const core = bareCore({
    db: { conversations: { find: () => ({ toArray: async () => [] }) } },
    bus: createBus(),
    now: Date.now,
  }) as RunningCore
  visitorAccessOf.set(core, { authorize } as never)
  streamSubscriptionsOf.set(core, {
    async open(request: { sink: SubscriptionSink }) {
      sink = request.sink
      opened += 1
      return { number: opened }
    },
    close: (subscription: unknown) => void closed.push(subscription),
  } as never)
  wakeupsOf.set(core, { isCurrent: () => true } as never)
  return { core, closed, opened: () => opened, sink: () => sink! }
}

const subscribe = (id: number) =>
  create(WatchEventsRequestSchema, {
    commands: [{ command: { case: 'subscribe', value: { subscriptionId: id, credentials: {} } } }],
  })

it('a gateway that uses the id of an open subscription is disconnected, and all its subscriptions end', async () => {
  const { core, closed, opened } = startGateway(async () => ({
    session: { conversationId: 'cnv_1' },
    installation: {},
  }))
  async function* commands() {
    yield subscribe(1)
    await new Promise((resolve) => setImmediate(resolve))
    yield subscribe(1)
    await new Promise(() => {})
  }
  const frames = watchEvents(core, commands(), new AbortController().signal)
  for await (const _ of frames);
  expect([opened(), closed.length]).toEqual([1, 1])
})

it('a gateway that sends refused subscriptions and reads nothing is disconnected', async () => {
  const { core } = startGateway(async () => Promise.reject(new Error('refused')))
  let sent = 0
  async function* commands() {
    for (; sent < 1_000_000; sent += 1) {
      yield subscribe(sent)
      if (sent % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await new Promise(() => {})
  }
  const frames = watchEvents(core, commands(), new AbortController().signal)
  await frames.next()
  await new Promise<void>((resolve) => {
    const look = setInterval(() => {
      // The frames were dropped when they exceeded their maximum.
      if (sent < 262_144) return
      clearInterval(look)
      resolve()
    }, 10)
  })
  expect((await frames.next()).done).toBe(true)
  const free = unreadFramesOf(core).join(Number.POSITIVE_INFINITY)
  expect(free.take(256 * 2 ** 20)).toBe(true)
})

it('presence of any visitors, streams and tabs stays within its bounds, and ends with the gateway', async () => {
  let time = 0
  const presence = visitorPresenceOf(bareCore({ now: () => time }))
  const source = presence.addSource()
  const id = (index: number) => `cnv_${index}`
  for (let start = 0; start < 250_000; start += 10_000) {
    const many = Array.from({ length: 10_000 }, (_, index) => start + index)
    source.update({
      opened: many.map((index) => ({ streamId: index, conversationId: id(index), workspaceId: 'ws_1' })),
      ended: [],
      reports: many.map((index) => ({
        conversationId: `cnv_r${index}`,
        workspaceId: 'ws_1',
        tab: 't'.repeat(index % 2 === 0 ? 10 : 1_000),
        isHere: true,
      })),
    })
  }
  await presence.check()
  let shown = 0
  presence.watch(undefined, (changes, isComplete) => {
    if (isComplete) shown = changes.length
  })
  expect(shown).toBeGreaterThan(190_000)
  expect(shown).toBeLessThanOrEqual(400_000)
  source.end()
  for (let check = 0; check < 12; check += 1) {
    time += 900
    await presence.check()
  }
  presence.watch(undefined, (changes) => {
    shown = changes.length
  })
  expect(shown).toBe(0)
})
