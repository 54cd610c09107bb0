import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import { createHeldAnnouncements } from './held-announcements.ts'

/**
 * Generates the steps of two cores. Each step changes a state (`isChange`) or appends an event. The
 * announcement of an event may arrive before or after an earlier wake-up.
 */
const work = fc.array(fc.record({ core: fc.constantFrom('a', 'b'), isChange: fc.boolean() }), { maxLength: 20 })

it('an event is emitted once, and never before an earlier change of its core has arrived', () => {
  fc.assert(
    fc.property(work, fc.infiniteStream(fc.boolean()), (steps, wakeupFirst) => {
      const bus = createBus()
      const held = createHeldAnnouncements(bus)
      const written: Record<string, number> = { a: 0, b: 0 }
      const arrived: Record<string, number> = { a: 0, b: 0 }
      const wakeups: { from: string; changes: number }[] = []
      const announcements: { from: string; changes: number; events: object[] }[] = []
      steps.forEach(({ core, isChange }, index) => {
        if (isChange) wakeups.push({ from: core, changes: ++written[core]! })
        else {
          const event = { conversationId: core, sequence: index + 1, closed: false }
          announcements.push({ from: core, changes: written[core]!, events: [event] })
        }
      })
      const needed = new Map(announcements.map(({ changes, events: [event] }) => [event, changes]))
      const emitted: number[] = []
      bus.on('advanced', (core, { sequence }) => {
        const [, changes] = [...needed].find(([event]) => (event as { sequence: number }).sequence === sequence)!
        expect(arrived[core]).toBeGreaterThanOrEqual(changes)
        emitted.push(sequence)
      })
      const expected = announcements.map(({ events: [event] }) => (event as { sequence: number }).sequence)
      const isWakeup = wakeupFirst[Symbol.iterator]()
      while (wakeups.length + announcements.length > 0) {
        if (announcements.length === 0 || (wakeups.length > 0 && isWakeup.next().value)) {
          const { from, changes } = wakeups.shift()!
          arrived[from] = changes
          held.release(from, changes)
        } else held.add(announcements.shift() as never)
      }
      expect(emitted.sort((a, b) => a - b)).toEqual(expected)
    }),
  )
})
