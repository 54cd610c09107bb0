import { expect, it } from 'vitest'
import type { LogEvent } from '../log-event.ts'
import { headsOf } from './wakeup-writer.ts'

it('headsOf keeps the state after each event, also if the events are too many to be included', () => {
  const occurredAt = new Date(5)
  const waiting: LogEvent = {
    conversationId: 'cnv_1',
    sequence: 7,
    type: 'agent.assigned',
    occurredAt,
    waitingSince: occurredAt,
  }
  const closed: LogEvent = {
    conversationId: 'cnv_2',
    sequence: 3,
    type: 'conversation.closed',
    occurredAt,
    closed: true,
  }
  expect(headsOf([waiting, closed])).toEqual([
    ['cnv_1', 7, false, waiting],
    ['cnv_2', 3, true, closed],
  ])
  const many = Array.from({ length: 33 }, () => waiting)
  expect(headsOf([closed, ...many]).slice(0, 2)).toEqual([
    ['cnv_2', 3, true],
    ['cnv_1', 7, false, null, occurredAt],
  ])
})
