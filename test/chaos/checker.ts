import { checkFeed } from './feed-checker.ts'
import { type Entry, ownerOf, type RecordedEvent, type Records } from './history.ts'
import { withoutUndone } from './undone.ts'

/** A guarantee that was broken during a chaos run. */
export interface Violation {
  rule: Rule
  what: string
}

/** Guarantees that the service must keep during all faults. */
export const rules = {
  acknowledged: 'an acknowledged message is in the log once, with the acknowledged id and sequence',
  majority: 'a majority read after the acknowledgement of a message has the message',
  once: 'a repeated operation creates one message',
  refused: 'no valid send is rejected',
  ordered: 'the sequences of a stream strictly grow, across reconnects',
  complete: 'a stream gets every event between its start and the end of the log',
  logged: 'every event of a stream and every message of a history is in the log',
  isolated: 'no visitor gets data of another visitor',
  history: 'a history has, in order, every message acknowledged before the request',
  reload: 'history pages plus the stream from their end contain every message once',
  'read again': 'each stream that has got an event gets a reset after a restore',
  'stream ends': 'a stream ends with its session',
  'feed complete': 'a reader of the feed gets every event of the logs, of leads and of ended deliveries',
  'feed logged': 'every event of the feed is in a log, a lead or an ended delivery',
  'feed ordered': 'an event has one cursor, and the events of a conversation are in their order',
  'feed read again': 'a reader of the feed is told to read again after a restore',
  'lead delivered': 'an acknowledged lead has one accepted delivery per subscription, received at least once',
  'lead exists': 'every delivery belongs to an existing lead',
  fenced: 'a result under a lost claim has no effect',
  withdrawn: 'no attempt that begins after the answer to a withdrawal has the text',
  'answer exact': 'a growing answer has all acknowledged text once, shows nothing else, and ends with a stop',
  'access ended': 'a ban ends every session of the visitor',
  memory: 'clients that do not read their answers cost bounded memory',
  recovered: 'all work completes after the faults end',
} as const

export type Rule = keyof typeof rules

/** Checks a recorded history against the final state of the database. A pure function. */
export function check(all: Entry[], records: Records): Violation[] {
  const entries = withoutUndone(all, records)
  return [
    ...checkMessages(entries, records),
    ...checkStreams(entries, records),
    ...checkHistories(entries, records),
    ...checkReloads(entries, records),
    ...entriesOf(entries, 'revoked').flatMap(({ visitor, streamEnded }) =>
      streamEnded ? [] : [violation('stream ends', `${visitor}’s stream stayed open after its session was revoked`)],
    ),
    ...checkLeads(entries, records),
    ...checkFeed(entries, records),
    ...entriesOf(entries, 'refused').map(({ operation, code }) => violation('refused', `${operation}: ${code}`)),
    ...entriesOf(entries, 'not in majority').map(({ operation }) => violation('majority', operation)),
    ...entriesOf(entries, 'still live').map(({ what }) => violation('access ended', what)),
    ...checkWithdrawals(entries),
    ...entriesOf(entries, 'answer').flatMap(checkAnswer),
    ...checkRecovery(entries),
    ...entriesOf(entries, 'memory').map(({ part, mebibytes }) => violation('memory', `${part}: ${mebibytes} MiB`)),
  ]
}

/** Checks whether all work completed. Needs no state of the database. */
export function checkRecovery(entries: Entry[]): Violation[] {
  return entriesOf(entries, 'stuck').map(({ what }) => violation('recovered', what))
}

const violation = (rule: Rule, what: string): Violation => ({ rule, what })

type Kind = Entry['kind']
type EntryOf<K extends Kind> = Extract<Entry, { kind: K }>
const entriesOf = <K extends Kind>(entries: Entry[], kind: K) =>
  entries.filter((entry) => entry.kind === kind) as EntryOf<K>[]

function checkMessages(entries: Entry[], { events }: Records): Violation[] {
  const violations: Violation[] = []
  // Returns a key that is unique to an operation. Operation ids are unique only within a conversation.
  const keyOf = ({ conversationId, operation }: { conversationId: string; operation?: string }) =>
    `${operation} in ${conversationId}`
  const sent = new Set(entriesOf(entries, 'sent').map(keyOf))
  const made = Map.groupBy(
    events.filter(({ operation }) => operation !== undefined),
    keyOf,
  )
  for (const [operation, all] of made) {
    if (all.length > 1) violations.push(violation('once', `${operation} is in the log ${all.length} times`))
    if (!sent.has(operation)) violations.push(violation('once', `${operation} is in the log but was never sent`))
  }
  for (const { operation, conversationId, messageId, sequence } of entriesOf(entries, 'acknowledged')) {
    const all = made.get(keyOf({ conversationId, operation })) ?? []
    const isThere = all.some(
      (event) =>
        event.messageId === messageId && event.sequence === sequence && event.conversationId === conversationId,
    )
    if (isThere) continue
    const found = all.map((event) => `${event.messageId} at ${event.sequence}`).join(', ') || 'nothing'
    violations.push(
      violation('acknowledged', `${operation} was acknowledged as ${messageId} at ${sequence}; the log has ${found}`),
    )
  }
  return violations
}

function checkStreams(entries: Entry[], { events }: Records): Violation[] {
  const logs = Map.groupBy(events, ({ conversationId }) => conversationId)
  return entriesOf(entries, 'session').flatMap(({ visitor, sessionId, conversationId }) => {
    const starts = entriesOf(entries, 'stream').filter((entry) => entry.visitor === visitor)
    if (starts.length === 0) return []
    const seen = entries.filter(
      (entry): entry is Seen =>
        entry.kind === 'restored' ||
        ((entry.kind === 'event' || entry.kind === 'read again') && entry.visitor === visitor),
    )
    const log = (logs.get(conversationId) ?? []).filter(
      (event) => !event.transient && (event.sessionId === undefined || event.sessionId === sessionId),
    )
    return checkStream(visitor, starts[0]!.after, seen, log)
  })
}

type Seen = EntryOf<'event'> | EntryOf<'read again'> | EntryOf<'restored'>

function checkStream(visitor: string, start: number, entries: Seen[], log: RecordedEvent[]): Violation[] {
  const violations: Violation[] = []
  const seen: EntryOf<'event'>[] = []
  /** Ranges of sequences that the visitor has read from its history instead of the stream. */
  const read: { after: number; through: number }[] = []
  let last = start
  /** After a restore, a stream may get a reset. It must, if it had got an event. */
  let [mayReset, mustReset] = [false, false]
  for (const entry of entries) {
    if (entry.kind === 'restored') {
      mayReset = true
      mustReset = seen.length > 0
      continue
    }
    if (entry.kind === 'read again') {
      read.push({ after: last, through: entry.lastSequence })
      last = entry.lastSequence
      continue
    }
    const { type, sequence, text } = entry
    if (type === 'replay.reset.required') {
      if (!mayReset) violations.push(violation('complete', `${visitor} got replay.reset.required at ${last}`))
      mayReset = mustReset = false
      continue
    }
    seen.push(entry)
    if (sequence <= last) violations.push(violation('ordered', `${visitor} got ${sequence} (${type}) after ${last}`))
    last = Math.max(last, sequence)
    if (text !== undefined && ownerOf(text) !== visitor) {
      violations.push(violation('isolated', `${visitor} got data of ${ownerOf(text)} at ${sequence}`))
    }
  }
  if (mustReset) violations.push(violation('read again', `${visitor} got no reset after the restore`))
  const isRead = (sequence: number) => read.some(({ after, through }) => sequence > after && sequence <= through)
  const bySequence = new Map(seen.map((event) => [event.sequence, event]))
  const logged = new Map(log.map((event) => [event.sequence, event]))
  for (const { sequence, type } of log) {
    if (sequence > start && !bySequence.has(sequence) && !isRead(sequence))
      violations.push(violation('complete', `${visitor} never got ${sequence} (${type}); its last is ${last}`))
  }
  for (const event of seen) {
    if (isTransient(event.type)) continue
    const stored = logged.get(event.sequence)
    if (stored?.type === event.type && stored.messageId === event.messageId) continue
    const found = stored ? `${stored.type} ${stored.messageId ?? ''}` : 'nothing'
    violations.push(
      violation(
        'logged',
        `${visitor} got ${event.type} ${event.messageId ?? ''} at ${event.sequence}; the log has ${found}`,
      ),
    )
  }
  return violations
}

/** Returns true for types of events that the event log does not keep. */
const isTransient = (type: string) => type.startsWith('typing.') || type === 'replay.reset.required'

function checkHistories(entries: Entry[], { events }: Records): Violation[] {
  const violations: Violation[] = []
  const conversations = new Map(entriesOf(entries, 'session').map((entry) => [entry.visitor, entry.conversationId]))
  const placeOf = (conversationId: string | undefined, messageId: string, sequence: number) =>
    `${conversationId} ${messageId} ${sequence}`
  const logged = new Set(
    events.map(({ conversationId, messageId = '', sequence }) => placeOf(conversationId, messageId, sequence)),
  )
  const acknowledged = new Map<string, EntryOf<'acknowledged'>[]>()
  const acknowledgedAtRead = new Map<number, number>()
  for (const entry of entries) {
    if (entry.kind === 'acknowledged') {
      const soFar = acknowledged.get(entry.conversationId)
      if (soFar) soFar.push(entry)
      else acknowledged.set(entry.conversationId, [entry])
    } else if (entry.kind === 'history asked') {
      acknowledgedAtRead.set(entry.read, acknowledged.get(conversations.get(entry.visitor) ?? '')?.length ?? 0)
    } else if (entry.kind === 'history') {
      const { visitor, read, messages } = entry
      const conversationId = conversations.get(visitor)
      const ids = new Set(messages.map(({ messageId }) => messageId))
      const before = (acknowledged.get(conversationId ?? '') ?? []).slice(0, acknowledgedAtRead.get(read))
      for (const { operation, messageId } of before) {
        if (!ids.has(messageId)) violations.push(violation('history', `${visitor}’s history lacks ${operation}`))
      }
      for (const [index, { messageId, sequence, text }] of messages.entries()) {
        if (index > 0 && sequence <= messages[index - 1]!.sequence)
          violations.push(
            violation('history', `${visitor}’s history has ${sequence} after ${messages[index - 1]!.sequence}`),
          )
        if (ownerOf(text) !== visitor)
          violations.push(violation('isolated', `${visitor}’s history has data of ${ownerOf(text)} at ${sequence}`))
        if (!logged.has(placeOf(conversationId, messageId, sequence)))
          violations.push(violation('logged', `${visitor}’s history had ${messageId} at ${sequence}; the log has not`))
      }
    }
  }
  return violations
}

function checkReloads(entries: Entry[], { events }: Records): Violation[] {
  const logs = Map.groupBy(
    events.filter(({ messageId }) => messageId !== undefined),
    ({ conversationId }) => conversationId,
  )
  const conversations = new Map(entriesOf(entries, 'session').map((entry) => [entry.visitor, entry.conversationId]))
  return entriesOf(entries, 'reload').flatMap(({ visitor, lastSequence, pages, streamed }) => {
    const end = Math.max(lastSequence, ...streamed)
    const log = (logs.get(conversations.get(visitor) ?? '') ?? []).filter(({ sequence }) => sequence <= end)
    const times = Map.groupBy([...pages, ...streamed], (sequence) => sequence)
    return log.flatMap(({ sequence }) => {
      const count = times.get(sequence)?.length ?? 0
      return count === 1
        ? []
        : [violation('reload', `${visitor} got ${sequence} ${count} times; pages end at ${lastSequence}`)]
    })
  })
}

/**
 * Longest time in milliseconds from the beginning of an attempt to its arrival: its worker may be stopped meanwhile.
 */
const arrivesWithinMs = 3_000

function checkWithdrawals(entries: Entry[]): Violation[] {
  const withdrawnAt = new Map(entriesOf(entries, 'withdrawn').map(({ visitor, at }) => [visitor, at]))
  return entriesOf(entries, 'text received').flatMap(({ visitor, at }) => {
    const lateMs = at - (withdrawnAt.get(visitor) ?? Number.POSITIVE_INFINITY)
    return lateMs > arrivesWithinMs
      ? [violation('withdrawn', `the text of ${visitor} arrived ${Math.round(lateMs)} ms after its withdrawal`)]
      : []
  })
}

function checkAnswer(answer: EntryOf<'answer'>): Violation[] {
  const { operation, planned, acknowledged, state, lengths, stops, statesAfterStop, shown, final } = answer
  const { body = '', growing } = final ?? {}
  const wrongLength = lengths.find(({ expected, got }) => expected !== got)
  const wrongText = shown.find((text) => !body.startsWith(text))
  const wrong = [
    !body.startsWith(acknowledged) && `acknowledged ${acknowledged}`,
    !planned.startsWith(body) && `planned ${planned}`,
    state === 'completed' && body !== planned && `was completed as ${planned}`,
    wrongLength && `had ${wrongLength.got} characters in place of ${wrongLength.expected}`,
    wrongText !== undefined && `showed ${wrongText}`,
    shown.at(-1) !== body && `showed ${shown.at(-1)} at last`,
    growing && 'grows for ever',
    new Set(stops.map((stop) => `${stop.state} ${stop.sequence}`)).size > 1 && 'was stopped twice',
    stops[0]?.state === 'stopped' && statesAfterStop.some((each) => each !== 'stopped') && 'grew after its stop',
  ]
  return wrong.filter(Boolean).map((what) => violation('answer exact', `${operation} is ${body}, and ${what}`))
}

function checkLeads(entries: Entry[], { leads, subscriptions, deliveries }: Records): Violation[] {
  const violations: Violation[] = []
  const existing = new Set(leads)
  const arrived = entriesOf(entries, 'delivery')
  for (const { deliveryId, leadId } of [...arrived, ...deliveries]) {
    if (!existing.has(leadId))
      violations.push(violation('lead exists', `${deliveryId} belongs to ${leadId}, which does not exist`))
  }
  const received = new Set(arrived.map(({ deliveryId }) => deliveryId))
  const ofLead = Map.groupBy(deliveries, ({ leadId }) => leadId)
  // A lead may be stored although its capture returned an error. It must be delivered, too.
  for (const leadId of new Set([...entriesOf(entries, 'lead').map((lead) => lead.leadId), ...leads])) {
    const made = ofLead.get(leadId) ?? []
    for (const subscriptionId of subscriptions) {
      const all = made.filter((delivery) => delivery.subscriptionId === subscriptionId)
      if (all.length !== 1)
        violations.push(violation('lead delivered', `${leadId} has ${all.length} deliveries for ${subscriptionId}`))
      for (const { deliveryId, status } of all) {
        if (status !== 'accepted' || !received.has(deliveryId))
          violations.push(
            violation(
              'lead delivered',
              `${deliveryId} is ${status}, ${received.has(deliveryId) ? '' : 'not '}received`,
            ),
          )
      }
    }
  }
  const lost = new Set(entriesOf(entries, 'claim lost').map(({ deliveryId, claimId }) => `${deliveryId} ${claimId}`))
  for (const { claimId, counted } of entriesOf(entries, 'late result')) {
    if (counted) violations.push(violation('fenced', `the core accepted a result under the lost claim ${claimId}`))
  }
  for (const { deliveryId, claims } of deliveries) {
    for (const claimId of claims) {
      if (lost.has(`${deliveryId} ${claimId}`))
        violations.push(violation('fenced', `${deliveryId} has an outcome under the lost claim ${claimId}`))
    }
  }
  return violations
}
