import { expect, it } from 'vitest'
import { checkFeed } from './feed-checker.ts'
import type { Entry, RecordedEvent, Records } from './history.ts'

const logged = (sequence: number, type = 'message.accepted'): RecordedEvent => ({
  conversationId: 'cnv_1',
  sequence,
  type,
  transient: false,
  messageId: `msg_${sequence}`,
})
const records: Records = {
  events: [logged(1), logged(2), logged(3), logged(4, 'navigation.requested')],
  leads: ['lead_1'],
  subscriptions: ['sub_1'],
  deliveries: [{ deliveryId: 'dlv_1', leadId: 'lead_1', subscriptionId: 'sub_1', status: 'accepted', claims: [] }],
}

const event = (reader: string, cursor: string, type: string, about: string): Entry => ({
  kind: 'feed event',
  reader,
  cursor,
  type,
  about,
  sequence: 0,
})
const message = (sequence: number, cursor = `${sequence + 1}`): Entry => ({
  kind: 'feed event',
  reader: 'conversations',
  cursor,
  type: 'message.visitor',
  about: 'cnv_1',
  sequence,
  messageId: `msg_${sequence}`,
})
const opened: Entry[] = [
  { kind: 'session', visitor: 'eve', sessionId: 'ses_1', conversationId: 'cnv_1' },
  { kind: 'feed opened', reader: 'conversations' },
  { kind: 'feed opened', reader: 'leads' },
]
const created = event('conversations', '1', 'conversation.created', 'cnv_1')
const [captured, delivered] = [
  event('leads', '1', 'lead.captured', 'lead_1'),
  event('leads', '2', 'lead.delivered', 'dlv_1'),
]
const read = [created, message(1), message(2), message(3), captured, delivered]
const good = [...opened, ...read]
const restored: Entry = { kind: 'restored' }
const again = (reader: string): Entry => ({ kind: 'feed read again', reader })
const without = (entry: Entry) => good.filter((each) => each !== entry)

it.each<[string, Entry[]]>([
  ['each event once', good],
  ['an event twice, because it died before it stored its cursor', [...good, message(3)]],
  ['events of conversations that are not checked', [...good, { ...message(1, '9'), about: 'cnv_2' } as Entry]],
  [
    'other events before a restore, then all again',
    [...opened, created, message(1), message(7), captured, restored, again('conversations'), again('leads'), ...read],
  ],
  ['nothing before a restore', [...opened, restored, ...read]],
])('a reader of the feed may get %s', (_name, entries) => {
  expect(checkFeed(entries, records)).toEqual([])
})

it.each<[string, Entry[], string]>([
  ['a message is missing', without(read[2]!), 'feed complete'],
  ['the creation is missing', without(created), 'feed complete'],
  ['a lead is missing', without(captured), 'feed complete'],
  ['an ended delivery is missing', without(delivered), 'feed complete'],
  ['a reader got nothing', opened, 'feed complete'],
  ['an event of no log was read', [...good, message(7)], 'feed logged'],
  ['an event differs from the log', [...without(read[3]!), { ...message(3), messageId: 'x' } as Entry], 'feed logged'],
  ['an event has two cursors', [...good, message(3, '8')], 'feed ordered'],
  ['a cursor has two events', [...good, message(2, '4')], 'feed ordered'],
  ['events of a conversation are out of order', [...opened, created, message(2, '2'), message(1, '3')], 'feed ordered'],
  ['a reader reads on after a restore', [...good, restored, again('conversations'), ...read], 'feed read again'],
])('the checker of the feed reports that %s', (_name, entries, rule) => {
  expect(checkFeed(entries, records).map((violation) => violation.rule)).toContain(rule)
})
