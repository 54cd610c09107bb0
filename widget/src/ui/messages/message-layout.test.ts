import { expect, it } from 'vitest'
import type { WidgetMessage } from '../../vocabulary/types.ts'
import { layOut } from './message-layout.ts'

const message = (key: string): WidgetMessage => ({
  key,
  author: { kind: 'agent', displayName: 'Ada' },
  body: key,
  contentType: 'text',
  createdAt: '2026-11-23T10:00:00.000Z',
  deliveryStatus: 'sent',
  messageId: key,
})

it('the first new message begins a group and is marked, and the message before it ends its group', () => {
  const messages = ['a', 'b', 'c'].map(message)
  const marks = (firstNewKey?: string) =>
    layOut(messages, firstNewKey).map(({ startsGroup, endsGroup, startsNew }) => [startsGroup, endsGroup, startsNew])
  expect(marks()).toEqual([
    [true, false, false],
    [false, false, false],
    [false, true, false],
  ])
  expect(marks('b')).toEqual([
    [true, true, false],
    [true, false, true],
    [false, true, false],
  ])
})
