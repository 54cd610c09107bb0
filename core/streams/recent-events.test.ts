import { array, assert, boolean, constant, integer, oneof, property, record } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { createBus } from '../bus.ts'
import type { LogEvent } from '../log-event.ts'
import { bareCore } from '../test/core-with.ts'
import { toStreamEvent } from './model.ts'
import { recentEventsOf } from './recent-events.ts'

const minute = 60_000

function newLog() {
  let now = Date.UTC(2030, 0, 1)
  const bus = createBus()
  const recent = recentEventsOf(bareCore({ bus, now: () => now }))
  const log: LogEvent[] = []

  /** Appends an event. If `here` is false, another process appends the event. */
  function append({ here = true, transient = false, body = 'text', conversationId = 'c' } = {}) {
    const event = {
      conversationId,
      sequence: log.filter((each) => each.conversationId === conversationId).length + 1,
      occurredAt: new Date(now),
      transient: transient || undefined,
      message: { body },
    } as LogEvent
    log.push(event)
    if (here) bus.emit('appended', event)
  }

  return {
    append,
    recent,
    log,
    advance(ms: number) {
      now += ms
    },
    read: (after: number, through = log.length, conversationId = 'c') =>
      recent.read({ conversationId, after, through }),
  }
}

describe('recent events', () => {
  it('are all events of the range, or undefined, for any mix of two writers', () => {
    const step = oneof(
      record({ here: boolean(), transient: boolean() }),
      record({ wait: integer({ min: 0, max: 8 * minute }) }),
      constant({ sweep: true as const }),
    )
    assert(
      property(array(step, { maxLength: 150 }), integer({ min: 0, max: 150 }), (steps, after) => {
        const { append, recent, log, advance, read } = newLog()
        for (const each of steps) {
          if ('wait' in each) advance(each.wait)
          else if ('sweep' in each) recent.dropOld()
          else append(each)
          const found = read(after)
          if (found) expect(found).toEqual(log.slice(after).map(toStreamEvent))
        }
      }),
    )
  })

  it('contain the events that this process has just appended', () => {
    const { append, read } = newLog()
    for (let count = 0; count < 5; count += 1) append()
    expect(read(3)?.map(({ sequence }) => sequence)).toEqual([4, 5])
    expect(read(5)).toEqual([])
    expect(read(0)).toHaveLength(5)
  })

  it('are undefined if another process has appended the last event or an event in between', () => {
    const { append, read } = newLog()
    append()
    append({ here: false })
    expect(read(0)).toBeUndefined()
    append()
    expect(read(0)).toBeUndefined()
    expect(read(2)).toHaveLength(1)
  })

  it('are limited to 100 for each log', () => {
    const { append, read } = newLog()
    for (let count = 0; count < 103; count += 1) append()
    expect(read(2)).toBeUndefined()
    expect(read(3)).toHaveLength(100)
  })

  it.each(
    someOf(
      [
        ['Latin', 'x'.repeat(20_000_000)],
        ['other', 'й'.repeat(10_000_000)],
      ],
      1,
    ),
  )('with %s letters are limited in bytes, and the log with the oldest append is dropped first', (_, body) => {
    const { append, read } = newLog()
    for (const conversationId of ['c', 'd', 'e', 'f']) append({ conversationId, body })
    expect(read(0, 1, 'c')).toBeUndefined()
    for (const conversationId of ['d', 'e', 'f']) expect(read(0, 1, conversationId)).toHaveLength(1)
  })

  it('are dropped after five minutes without an append, and at the next append if they are older', () => {
    const { append, read, recent, advance } = newLog()
    append()
    advance(5 * minute)
    append()
    recent.dropOld()
    expect(read(0)).toHaveLength(2)
    advance(1)
    append()
    expect(read(0)).toBeUndefined()
    expect(read(1)).toHaveLength(2)
    advance(5 * minute + 1)
    recent.dropOld()
    expect(read(2)).toBeUndefined()
  })
})
