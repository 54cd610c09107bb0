import fc from 'fast-check'
import { expect, it } from 'vitest'
import { bareCore } from '../test/core-with.ts'
import { dueDestinationsOf } from './claims.ts'
import { type DeliveryQueue, deliveryQueueOf } from './queue.ts'
import { createWorkerRoom } from './worker-room.ts'

it('chooses each due destination that the worker has room for, and never more than fit into it together', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        count: fc.integer({ min: 0, max: 400 }),
        limit: fc.integer({ min: 0, max: 60 }),
        perDestination: fc.integer({ min: 1, max: 10 }),
        taken: fc.integer({ min: 0, max: 60 }),
        answerMs: fc.constantFrom(1, 100, 10_000),
        paused: fc.integer({ min: 0, max: 5 }),
      }),
      async ({ count, limit, perDestination, taken, answerMs, paused }) => {
        const due = Array.from({ length: count }, (_, index) => `d${index}`)
        const upcoming = due.slice(0, 256).map((destination) => ({ destination, dueAt: new Date(0) }))
        const queue = { upcoming: async () => upcoming, dueDestinations: async () => due }
        const core = bareCore({ random: Math.random })
        deliveryQueueOf.set(core, queue as unknown as DeliveryQueue)
        const destinations = dueDestinationsOf(core)
        for (const each of due.slice(0, paused)) destinations.throttle(each, 2)
        const room = createWorkerRoom({ limit, perDestination })
        room.reserve('answered')
        room.free('answered', answerMs)
        for (let index = 0; index < taken; index += 1) room.reserve(due[index % Math.max(1, count)] ?? 'other')
        const before = room.taken()
        const { chosen } = await destinations.choose(room, new Date(1), false)
        expect(room.taken()).toBe(before)
        expect(chosen.filter((each) => due.indexOf(each) < paused)).toEqual([])
        expect(chosen.map((each) => room.reserve(each))).toEqual(chosen.map(() => true))
        const left = due.slice(paused).filter((each) => !chosen.includes(each))
        expect(left.filter((each) => room.placesFor(each) > 0)).toEqual([])
      },
    ),
  )
})
