import { expect, it } from 'vitest'
import type { Activity, WidgetMessage } from '../../vocabulary/types.ts'
import { englishTexts as texts } from '../languages/en.ts'
import { withActivity } from './activity-lines.ts'

const at = '2026-11-20T12:00:00.000Z'
const message = (sequence: number | undefined, body: string): WidgetMessage => ({
  key: body,
  sequence,
  body,
  author: { kind: 'visitor' },
  contentType: 'text',
  deliveryStatus: 'queued',
  createdAt: at,
})
const line = (type: Activity['type'], sequence: number): Activity => ({
  key: `${type}-${sequence}`,
  type,
  sequence,
  at,
})
const bodies = (messages: readonly WidgetMessage[]) => messages.map(({ body }) => body)

it('an activity line follows all messages up to its sequence number and precedes unsent messages', () => {
  const messages = [message(1, 'one'), message(4, 'four'), message(undefined, 'unsent')]
  const activity = [line('form.submitted', 0), line('conversation.closed', 2), line('screenshot.uploaded', 4)]
  expect(bodies(withActivity(messages, activity, { texts, hasOlder: false }))).toEqual([
    texts.formSubmitted,
    'one',
    texts.conversationClosed,
    'four',
    texts.requestOutcomes.screenshot.uploaded,
    'unsent',
  ])
})

it('an activity adds no line if it is older than the loaded messages or has no text', () => {
  const activity = [line('conversation.closed', 2), line('navigation.accepted', 60), line('conversation.reopened', 61)]
  const messages = [message(50, 'fifty'), message(60, 'sixty')]
  expect(bodies(withActivity(messages, activity, { texts, hasOlder: true }))).toEqual([
    'fifty',
    'sixty',
    texts.conversationReopened,
  ])
})

it('a closing has no line once the conversation is open again, because its line asks to write a message', () => {
  const activity = [line('conversation.closed', 2), line('conversation.reopened', 3), line('conversation.closed', 4)]
  const shown = (count: number) =>
    bodies(withActivity([message(1, 'one')], activity.slice(0, count), { texts, hasOlder: false }))
  expect(shown(1)).toEqual(['one', texts.conversationClosed])
  expect(shown(2)).toEqual(['one', texts.conversationReopened])
  expect(shown(3)).toEqual(['one', texts.conversationReopened, texts.conversationClosed])
})

it('a submitted form adds a card with the address and the time from which operators answer', () => {
  const [card] = withActivity([], [{ ...line('form.submitted', 0), address: 'ada@example.com' }], {
    texts,
    hasOlder: false,
    answersFrom: 'Monday 9:00',
  })
  expect(card).toMatchObject({ contentType: 'card', author: { kind: 'system' } })
  expect(card!.body.split('\n')).toEqual([texts.formSubmitted, 'ada@example.com', 'We answer from Monday 9:00.'])
})

it('an activity adds a line to a conversation without messages', () => {
  expect(bodies(withActivity([], [line('form.submitted', 0)], { texts, hasOlder: false }))).toEqual([
    texts.formSubmitted,
  ])
  expect(withActivity([], [], { texts, hasOlder: false })).toEqual([])
})

it('a line follows each accepted request for a person', () => {
  const messages = [message(1, texts.talkToPerson), message(2, 'hello'), message(undefined, texts.talkToPerson)]
  expect(bodies(withActivity(messages, [], { texts, hasOlder: false }))).toEqual([
    texts.talkToPerson,
    texts.askingColleague,
    'hello',
    texts.talkToPerson,
  ])
})
