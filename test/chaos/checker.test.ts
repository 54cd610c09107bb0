import { describe, expect, it } from 'vitest'
import { check } from './checker.ts'
import type { Answer, Entry, RecordedEvent, Records } from './history.ts'

const event = (sequence: number, more: Partial<RecordedEvent> = {}): RecordedEvent => ({
  conversationId: 'cnv_1',
  sequence,
  type: 'message.accepted',
  transient: false,
  messageId: `msg_${sequence}`,
  operation: `op-${sequence}`,
  ...more,
})
const records = (change: Partial<Records> = {}): Records => ({
  events: [event(1), event(2), event(3)],
  leads: ['lead_1'],
  subscriptions: ['sub_1'],
  deliveries: [
    { deliveryId: 'dlv_1', leadId: 'lead_1', subscriptionId: 'sub_1', status: 'accepted', claims: ['clm_2'] },
  ],
  ...change,
})

const session: Entry = { kind: 'session', visitor: 'eve', sessionId: 'ses_1', conversationId: 'cnv_1' }
const sent = (number: number): Entry => ({ kind: 'sent', operation: `op-${number}`, conversationId: 'cnv_1' })
const acknowledged = (number: number, change: { messageId?: string; sequence?: number } = {}): Entry => ({
  kind: 'acknowledged',
  operation: `op-${number}`,
  conversationId: 'cnv_1',
  messageId: `msg_${number}`,
  sequence: number,
  ...change,
})
const stream = (after: number): Entry => ({ kind: 'stream', visitor: 'eve', after })
const seen = (sequence: number, change: Partial<Extract<Entry, { kind: 'event' }>> = {}): Entry => ({
  kind: 'event',
  visitor: 'eve',
  sequence,
  type: 'message.accepted',
  messageId: `msg_${sequence}`,
  text: 'eve writes',
  ...change,
})
const historyRequested: Entry = { kind: 'history asked', visitor: 'eve', read: 1 }
const history = (sequences: number[], text = 'eve writes'): Entry => ({
  kind: 'history',
  visitor: 'eve',
  read: 1,
  messages: sequences.map((sequence) => ({ messageId: `msg_${sequence}`, sequence, text })),
})
const reload = (change: Partial<Extract<Entry, { kind: 'reload' }>> = {}): Entry => ({
  kind: 'reload',
  visitor: 'eve',
  lastSequence: 2,
  pages: [1, 2],
  streamed: [3],
  ...change,
})
const lead: Entry = { kind: 'lead', leadId: 'lead_1' }
const answer = (change: Partial<Answer> = {}): Entry => ({
  kind: 'answer',
  operation: 'robo-1',
  planned: 'one two three',
  acknowledged: 'one two',
  state: 'stopped',
  lengths: [{ expected: 7, got: 7 }],
  stops: [{ state: 'stopped', sequence: 4 }],
  statesAfterStop: ['stopped'],
  shown: ['one', 'one', 'one two'],
  final: { body: 'one two' },
  ...change,
})
const delivered: Entry = { kind: 'delivery', deliveryId: 'dlv_1', leadId: 'lead_1' }

const good: Entry[] = [
  session,
  stream(0),
  sent(1),
  acknowledged(1),
  seen(1),
  sent(2),
  historyRequested,
  seen(2),
  acknowledged(2),
  history([1, 2]),
  // The stream reconnects and starts after the event with sequence number 2.
  stream(2),
  sent(3),
  acknowledged(3),
  acknowledged(3),
  seen(3),
  reload(),
  reload({ streamed: [] }),
  { kind: 'revoked', visitor: 'bob', streamEnded: true },
  lead,
  delivered,
  delivered,
]
const without = (...entries: Entry[]) => good.filter((entry) => !entries.includes(entry))
const replaced = (kind: Entry['kind'], nth: number, replacement: Entry) => {
  const [place] = good.flatMap((entry, index) => (entry.kind === kind ? [index] : [])).slice(nth)
  return good.with(place!, replacement)
}
const brokenRules = (entries: Entry[], change: Partial<Records> = {}) => [
  ...new Set(check(entries, records(change)).map(({ rule }) => rule)),
]

const resetEvent = seen(3, { type: 'replay.reset.required', messageId: undefined, text: undefined })
/** A backup with three messages is restored after a fourth and a lead. Another message becomes the fourth. */
const restored: Entry[] = [
  ...good,
  { kind: 'backed up' },
  sent(4),
  acknowledged(4, { messageId: 'msg_lost' }),
  seen(4, { messageId: 'msg_lost' }),
  { kind: 'lead', leadId: 'lead_lost' },
  { kind: 'delivery', deliveryId: 'dlv_lost', leadId: 'lead_lost' },
  { kind: 'restored' },
  resetEvent,
  { kind: 'read again', visitor: 'eve', lastSequence: 3 },
]

describe('a valid history', () => {
  it('lacks what was done between a backup and its restore, if every stream got a reset', () => {
    expect(check(restored, records())).toEqual([])
    const later = [sent(5), acknowledged(5, { sequence: 4, messageId: 'msg_5' }), seen(4, { messageId: 'msg_5' })]
    const events = [event(1), event(2), event(3), event(4, { messageId: 'msg_5', operation: 'op-5' })]
    const withoutReloads = [...restored, ...later].filter(({ kind }) => kind !== 'reload')
    expect(check(withoutReloads, records({ events }))).toEqual([])
  })

  it('has no violation', () => {
    expect(check(good, records())).toEqual([])
  })

  it('may have the text of a message before its withdrawal, and with an attempt that had begun', () => {
    const received = [0, 900, 1_500].map((at): Entry => ({ kind: 'text received', visitor: 'w-1', at }))
    expect(check([...good, ...received, { kind: 'withdrawn', visitor: 'w-1', at: 1_000 }], records())).toEqual([])
  })

  it('may have sends without a response, both with and without a message in the event log', () => {
    expect(brokenRules([...good.filter(({ kind }) => kind !== 'acknowledged'), sent(4)])).toEqual([])
  })

  it('may have gaps in its sequence numbers, events of other sessions, and typing events that the event log no longer has', () => {
    const events = [event(1), event(2), event(3), event(5, { type: 'session.closed', sessionId: 'ses_2' })]
    const typing = seen(4, { type: 'typing.started', messageId: undefined })
    expect(brokenRules([...good, typing, sent(5)], { events })).toEqual([])
  })

  it('may have an answer that was stopped between its arrival and its acknowledgement', () => {
    expect(brokenRules([...good, answer(), answer({ acknowledged: 'one' })])).toEqual([])
  })

  it('may have a lead whose capture was not acknowledged', () => {
    expect(brokenRules(without(lead))).toEqual([])
  })
})

it.each<[string, Entry[], Partial<Records>, string[]]>([
  ['a lost acknowledged message', good, { events: [event(1), event(2)] }, ['acknowledged', 'logged']],
  ['a message acknowledged with another id', [...good, acknowledged(3, { messageId: 'msg_9' })], {}, ['acknowledged']],
  ['a message acknowledged with another sequence', [...good, acknowledged(3, { sequence: 9 })], {}, ['acknowledged']],
  [
    'an operation that created two messages',
    [...good, seen(4, { messageId: 'msg_4' })],
    { events: [event(1), event(2), event(3), event(4, { operation: 'op-3' })] },
    ['once'],
  ],
  ['a logged message that was never sent', replaced('sent', 2, sent(2)), {}, ['once']],
  [
    'a rejected send',
    [...good, { kind: 'refused', operation: 'op-4', code: '409 IdempotencyConflict' }],
    {},
    ['refused'],
  ],
  ['a duplicate event', replaced('event', 2, seen(2)), {}, ['ordered', 'complete']],
  ['events out of order', [...without(good.at(-4)!), seen(5), seen(3)], {}, ['ordered', 'logged']],
  ['an event missing after a reconnect', replaced('event', 1, seen(3)), {}, ['ordered', 'complete']],
  ['a missing last event', replaced('event', 2, stream(2)), {}, ['complete']],
  ['a replay reset', [...good, seen(3, { type: 'replay.reset.required' })], {}, ['complete']],
  ['an event missing from the log', [...good, seen(4)], {}, ['logged']],
  ['an event that differs from the log', replaced('event', 2, seen(3, { messageId: 'msg_9' })), {}, ['logged']],
  ['another visitor’s data on a stream', replaced('event', 0, seen(1, { text: 'bob writes' })), {}, ['isolated']],
  ['another visitor’s data in a history', replaced('history', 0, history([1, 2], 'bob')), {}, ['isolated']],
  ['a history without an acknowledged message', replaced('history', 0, history([2])), {}, ['history']],
  ['a history out of order', replaced('history', 0, history([2, 1])), {}, ['history']],
  ['a history with a message missing from the log', replaced('history', 0, history([1, 2, 7])), {}, ['logged']],
  ['a page that ends before its `lastSequence`', [...good, reload({ lastSequence: 3, streamed: [] })], {}, ['reload']],
  ['a message on neither a page nor the stream', [...good, reload({ pages: [1] })], {}, ['reload']],
  ['a message on both a page and the stream', [...good, reload({ streamed: [2, 3] })], {}, ['reload']],
  [
    'a stream still open after its session was revoked',
    [...good, { kind: 'revoked', visitor: 'bob', streamEnded: false }],
    {},
    ['stream ends'],
  ],
  ['a delivery of an unknown lead', [...good, { ...delivered, leadId: 'lead_9' }], {}, ['lead exists']],
  ['a lead without its delivery', good, { deliveries: [] }, ['lead delivered']],
  ['a lost lead and delivery', without(delivered), { leads: [], deliveries: [] }, ['lead delivered']],
  ['a delivery that the receiver never got', without(delivered), {}, ['lead delivered']],
  [
    'two deliveries of a lead to one subscription',
    [...good, { ...delivered, deliveryId: 'dlv_2' }],
    { deliveries: [...records().deliveries, { ...records().deliveries[0]!, deliveryId: 'dlv_2' }] },
    ['lead delivered'],
  ],
  [
    'a delivery that was not accepted',
    good,
    { deliveries: [{ ...records().deliveries[0]!, status: 'pending' }] },
    ['lead delivered'],
  ],
  [
    'a late result that was accepted',
    [...good, { kind: 'late result', claimId: 'clm_1', counted: true }],
    {},
    ['fenced'],
  ],
  [
    'an outcome under a lost claim',
    [...good, { kind: 'claim lost', deliveryId: 'dlv_1', claimId: 'clm_2' }],
    {},
    ['fenced'],
  ],
  [
    'a withdrawn text that arrived with a later attempt',
    [...good, { kind: 'withdrawn', visitor: 'w-1', at: 1_000 }, { kind: 'text received', visitor: 'w-1', at: 6_000 }],
    {},
    ['withdrawn'],
  ],
  ...(
    [
      ['lost acknowledged text', { acknowledged: 'one two three' }],
      ['a part twice', { planned: 'one three' }],
      ['an end before the last part', { state: 'completed' }],
      ['a shorter length', { lengths: [{ expected: 7, got: 3 }] }],
      ['a text that is no part of it', { shown: ['one three', 'one two'] }],
      ['an end that was not shown', { shown: ['one'] }],
      ['no end', { final: { body: 'one two', growing: true } }],
      ['two stops', { stops: [4, 5].map((sequence) => ({ state: 'stopped', sequence })) }],
      ['text after its stop', { statesAfterStop: ['growing'] }],
    ] satisfies [string, Partial<Answer>][]
  ).map(([name, change]): [string, Entry[], Partial<Records>, string[]] => [
    `an answer with ${name}`,
    [...good, answer(change)],
    {},
    ['answer exact'],
  ]),
  ['a session still active after a ban', [...good, { kind: 'still live', what: 'a tab sends' }], {}, ['access ended']],
  ['a majority read without the message', [...good, { kind: 'not in majority', operation: 'op-4' }], {}, ['majority']],
  ['too much memory', [...good, { kind: 'memory', part: 'gateway 1', mebibytes: 900 }], {}, ['memory']],
  ['a stream without a reset after a restore', restored.filter((entry) => entry !== resetEvent), {}, ['read again']],
  ['a second reset after one restore', [...restored, resetEvent], {}, ['complete']],
  [
    'a message of before the backup that the restore lost',
    restored,
    { events: [event(1), event(2)] },
    ['acknowledged', 'logged'],
  ],
  ['unfinished work', [...good, { kind: 'stuck', what: 'op-4 is not answered' }], {}, ['recovered']],
])('the checker reports %s', (_name, entries, change, rules) => {
  expect(brokenRules(entries, change).toSorted()).toEqual(rules.toSorted())
})
