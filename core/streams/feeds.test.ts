import { pino } from 'pino'
import { expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogEvent } from '../log-event.ts'
import { createCoreMetrics } from '../metrics.ts'
import { bareCore } from '../test/core-with.ts'
import { createFeeds } from './feeds.ts'

const conversationId = 'cnv_1'
const eventAt = (sequence: number): LogEvent => ({
  conversationId,
  sequence,
  type: 'message.accepted',
  occurredAt: new Date(0),
  data: {},
})

it('a feed delivers an announced event that the first read of the log did not return', async () => {
  let visible = [eventAt(1)]
  let reads = 0
  const delivered: number[] = []
  const events: Pick<EventStore, 'ends' | 'readManyAfter'> = {
    ends: async () => new Map([[conversationId, { sequence: visible.at(-1)!.sequence, closed: false }]]),
    async readManyAfter([range]) {
      reads += 1
      return visible.filter(({ sequence }) => sequence > range!.after)
    },
  }
  const core = bareCore({ metrics: createCoreMetrics(), logger: pino({ level: 'silent' }) })
  const feeds = createFeeds<object>(core, events, (_, { sequence }) => void delivered.push(sequence))
  await feeds.join(conversationId, {})
  feeds.advanced(conversationId, 2)
  await until('the log was read', () => reads === 1)
  visible = [1, 2, 3].map(eventAt)
  await feeds.check()
  await until('the events arrive', () => delivered.includes(3))
  expect(delivered).toEqual([2, 3])
})
