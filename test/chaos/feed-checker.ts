import type { Violation } from './checker.ts'
import type { Entry, Records } from './history.ts'

type FeedEvent = Extract<Entry, { kind: 'feed event' }>

/** Types of feed events, by type of the log event. Other types of log events have no feed event. */
const feedTypes: Record<string, string> = {
  'message.accepted': 'message.visitor',
  'message.received': 'message.agent',
  'agent.assigned': 'conversation.assigned',
  'agent.unassigned': 'conversation.unassigned',
  'conversation.closed': 'conversation.closed',
  'conversation.reopened': 'conversation.reopened',
  'session.identified': 'visitor.identified',
  'session.expired': 'visitor.left',
  'session.revoked': 'visitor.left',
  'visitor.banned': 'visitor.left',
}

/**
 * Checks that each reader of the feed has every event of the logs, of leads and of ended deliveries, and
 * nothing else. A reader that is told to read again begins anew.
 */
export function checkFeed(entries: Entry[], records: Records): Violation[] {
  const expected = expectedEvents(entries, records)
  const readers = new Set(entries.flatMap((entry) => (entry.kind === 'feed opened' ? [entry.reader] : [])))
  return [...readers].flatMap((reader) => {
    const own = entries.filter((entry) => entry.kind === 'restored' || ('reader' in entry && entry.reader === reader))
    const reset = own.findLastIndex(({ kind }) => kind === 'feed read again')
    const restore = own.findLastIndex(({ kind }) => kind === 'restored')
    const hadRead = own.slice(0, Math.max(0, restore)).some(({ kind }) => kind === 'feed event')
    if (restore > reset && hadRead)
      return [{ rule: 'feed read again' as const, what: `${reader} read on after a restore` }]
    const events = own.slice(reset + 1).filter((entry) => entry.kind === 'feed event')
    return [...checkOrder(reader, events), ...checkContent(reader, events, expected)]
  })
}

/** Number of events that readers of the feed still lack. */
export const missingInFeed = (entries: Entry[], records: Records): number =>
  checkFeed(entries, records).filter(({ rule }) => rule === 'feed complete' || rule === 'feed read again').length

const keyOf = ({
  type,
  about,
  sequence,
  messageId = '',
}: Pick<FeedEvent, 'type' | 'about' | 'sequence' | 'messageId'>) => `${type} ${about} ${sequence} ${messageId}`.trim()

function expectedEvents(entries: Entry[], { events, leads, deliveries }: Records) {
  const checked = new Set(entries.flatMap((entry) => (entry.kind === 'session' ? [entry.conversationId] : [])))
  const ofConversations = events
    .filter(({ conversationId, type }) => checked.has(conversationId) && feedTypes[type] !== undefined)
    .map(({ conversationId, sequence, type, messageId }) => ({
      type: feedTypes[type]!,
      about: conversationId,
      sequence,
      messageId,
    }))
  const created = [...new Set(ofConversations.map(({ about }) => about))].map((about) => ({
    type: 'conversation.created',
    about,
    sequence: 0,
  }))
  const captured = leads.map((about) => ({ type: 'lead.captured', about, sequence: 0 }))
  const ended = deliveries.map(({ deliveryId, status }) => ({
    type: status === 'accepted' ? 'lead.delivered' : 'lead.delivery-failed',
    about: deliveryId,
    sequence: 0,
  }))
  return {
    conversations: new Set([...ofConversations, ...created].map(keyOf)),
    leads: new Set([...captured, ...ended].map(keyOf)),
    checked,
  }
}

function checkOrder(reader: string, events: FeedEvent[]): Violation[] {
  const violations: Violation[] = []
  const keys = new Map<string, string>()
  const places = new Map<string, string>()
  const last = new Map<string, number>()
  for (const event of events) {
    const { cursor, about, sequence, type } = event
    const key = keyOf(event)
    const known = keys.get(cursor)
    if (known === key) continue
    if (known !== undefined)
      violations.push({ rule: 'feed ordered', what: `${reader} got ${known}, then ${key}, at ${cursor}` })
    if (places.has(key))
      violations.push({ rule: 'feed ordered', what: `${reader} got ${key} at ${places.get(key)} and ${cursor}` })
    keys.set(cursor, key)
    places.set(key, cursor)
    if (!isOfConversation(type)) continue
    if (sequence <= (last.get(about) ?? -1))
      violations.push({ rule: 'feed ordered', what: `${reader} got ${key} after ${last.get(about)}` })
    last.set(about, sequence)
  }
  return violations
}

const isOfConversation = (type: string) => /^(conversation|message|visitor)\./.test(type)

function checkContent(reader: string, events: FeedEvent[], expected: ReturnType<typeof expectedEvents>): Violation[] {
  // A reader follows one workspace: that of the visitors or that of the leads.
  const wanted = reader.startsWith('leads') ? expected.leads : expected.conversations
  const seen = new Set(events.map(keyOf))
  const missing = [...wanted].filter((key) => !seen.has(key))
  // Skips conversations without a recorded session, because clients delete them during the run.
  const own = events.filter(({ type, about }) => !isOfConversation(type) || expected.checked.has(about))
  const unknown = new Set(own.map(keyOf)).difference(wanted)
  return [
    ...missing.map((key) => ({ rule: 'feed complete' as const, what: `${reader} never got ${key}` })),
    ...[...unknown].map((key) => ({ rule: 'feed logged' as const, what: `${reader} got ${key}` })),
  ]
}
