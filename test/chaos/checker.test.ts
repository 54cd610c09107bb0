import { describe, expect, it } from 'vitest'
import { check } from './checker.ts'
import type { Entry, RecordedEvent, Records } from './history.ts'

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
const asked: Entry = { kind: 'history asked', visitor: 'eve', read: 1 }
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
const delivered: Entry = { kind: 'delivery', deliveryId: 'dlv_1', leadId: 'lead_1' }

const good: Entry[] = [
  session,
  stream(0),
  sent(1),
  acknowledged(1),
  seen(1),
  sent(2),
  asked,
  seen(2),
  acknowledged(2),
  history([1, 2]),
  // It was cut off and came back.
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
const replaced = (kind: Entry['kind'], nth: number, by: Entry) => {
  const [place] = good.flatMap((entry, index) => (entry.kind === kind ? [index] : [])).slice(nth)
  return good.with(place!, by)
}
const brokenRules = (entries: Entry[], change: Partial<Records> = {}) => [
  ...new Set(check(entries, records(change)).map(({ rule }) => rule)),
]

describe('a history in which all is well', () => {
  it('has no violation', () => {
    expect(check(good, records())).toEqual([])
  })

  it('may have sends without an answer, in the log or not', () => {
    expect(brokenRules([...good.filter(({ kind }) => kind !== 'acknowledged'), sent(4)])).toEqual([])
  })

  it('may have holes and events of other sessions, and typing that is gone', () => {
    const events = [event(1), event(2), event(3), event(5, { type: 'session.closed', sessionId: 'ses_2' })]
    const typing = seen(4, { type: 'typing.started', messageId: undefined })
    expect(brokenRules([...good, typing, sent(5)], { events })).toEqual([])
  })

  it('may have a lead that nobody was told of', () => {
    expect(brokenRules(without(lead))).toEqual([])
  })
})

describe('found is', () => {
  it.each<[string, Entry[], Partial<Records>, string[]]>([
    ['an acknowledged message that is lost', good, { events: [event(1), event(2)] }, ['acknowledged', 'true']],
    [
      'one that was acknowledged as something else',
      [...good, acknowledged(3, { messageId: 'msg_9' })],
      {},
      ['acknowledged'],
    ],
    ['one that was acknowledged at another place', [...good, acknowledged(3, { sequence: 9 })], {}, ['acknowledged']],
    [
      'an operation that made two messages',
      [...good, seen(4, { messageId: 'msg_4' })],
      { events: [event(1), event(2), event(3), event(4, { operation: 'op-3' })] },
      ['once'],
    ],
    ['a message that nobody sent', replaced('sent', 2, sent(2)), {}, ['once']],
    ['a refusal', [...good, { kind: 'refused', operation: 'op-4', code: '409 IdempotencyConflict' }], {}, ['refused']],
    ['an event that came twice', replaced('event', 2, seen(2)), {}, ['growing', 'whole']],
    ['events out of order', [...without(good.at(-4)!), seen(5), seen(3)], {}, ['growing', 'true']],
    ['an event that was left out where a stream resumed', replaced('event', 1, seen(3)), {}, ['growing', 'whole']],
    ['an end of the log that never came', replaced('event', 2, stream(2)), {}, ['whole']],
    ['a stream that has to begin anew', [...good, seen(3, { type: 'replay.reset.required' })], {}, ['whole']],
    ['an event that is not in the log', [...good, seen(4)], {}, ['true']],
    ['an event that is another one in the log', replaced('event', 2, seen(3, { messageId: 'msg_9' })), {}, ['true']],
    ['what is another visitor’s on a stream', replaced('event', 0, seen(1, { text: 'bob writes' })), {}, ['isolated']],
    ['what is another visitor’s in a history', replaced('history', 0, history([1, 2], 'bob')), {}, ['isolated']],
    ['a history without what was acknowledged', replaced('history', 0, history([2])), {}, ['history']],
    ['a history out of order', replaced('history', 0, history([2, 1])), {}, ['history']],
    ['a history with what the log never kept', replaced('history', 0, history([1, 2, 7])), {}, ['true']],
    [
      'a page that ends before its `lastSequence`',
      [...good, reload({ lastSequence: 3, streamed: [] })],
      {},
      ['reload'],
    ],
    ['a message that is on neither a page nor the stream', [...good, reload({ pages: [1] })], {}, ['reload']],
    ['a message that is on a page and the stream', [...good, reload({ streamed: [2, 3] })], {}, ['reload']],
    [
      'a stream that goes on after its session was revoked',
      [...good, { kind: 'revoked', visitor: 'bob', streamEnded: false }],
      {},
      ['ends'],
    ],
    ['a delivery of no lead', [...good, { ...delivered, leadId: 'lead_9' }], {}, ['lead there']],
    ['a lead without its delivery', good, { deliveries: [] }, ['lead kept']],
    ['a lead that was lost, with its delivery', without(delivered), { leads: [], deliveries: [] }, ['lead kept']],
    ['a delivery that never arrived', without(delivered), {}, ['lead kept']],
    [
      'two deliveries of a lead to one subscription',
      [...good, { ...delivered, deliveryId: 'dlv_2' }],
      { deliveries: [...records().deliveries, { ...records().deliveries[0]!, deliveryId: 'dlv_2' }] },
      ['lead kept'],
    ],
    [
      'a delivery that was not accepted',
      good,
      { deliveries: [{ ...records().deliveries[0]!, status: 'pending' }] },
      ['lead kept'],
    ],
    ['a late result that counts', [...good, { kind: 'late result', claimId: 'clm_1', counted: true }], {}, ['fenced']],
    [
      'an outcome under a claim that was lost',
      [...good, { kind: 'claim lost', deliveryId: 'dlv_1', claimId: 'clm_2' }],
      {},
      ['fenced'],
    ],
    ['a session that goes on after its ban', [...good, { kind: 'still live', what: 'a tab sends' }], {}, ['ended']],
    ['what stands still', [...good, { kind: 'stuck', what: 'op-4 is not answered' }], {}, ['goes on']],
  ])('%s', (_name, entries, change, rules) => {
    expect(brokenRules(entries, change).toSorted()).toEqual(rules.toSorted())
  })
})
