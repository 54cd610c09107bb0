import { type Entry, ownerOf, type RecordedEvent, type Records } from './history.ts'

/** A promise that was broken. */
export interface Violation {
  rule: Rule
  what: string
}

/** What is promised, whatever dies, hangs, is cut off or is set wrong meanwhile. */
export const rules = {
  acknowledged: 'an acknowledged message is in the log, once, as it was acknowledged',
  once: 'an operation makes one message, however often it is repeated',
  refused: 'no send is refused that the contract allows',
  growing: 'the events of a stream strictly grow, over all its connections',
  whole: 'a stream misses nothing between its start and the end of the log',
  true: 'what a stream or a history showed is in the log, as it was shown',
  isolated: 'no visitor sees what is another’s',
  history: 'a history has what was acknowledged before it was asked for, in order',
  reload: 'history pages and the stream from their end have every message of the log, once',
  ends: 'a stream ends with its session',
  'lead kept':
    'an acknowledged lead goes to each of its subscriptions, once in the books and at least once to the receiver',
  'lead there': 'nothing is delivered of a lead that is not there',
  fenced: 'a result under a lost claim changes nothing',
  ended: 'what an operator ended is over on every session of the visitor',
  'goes on': 'everything goes on once the faults are over',
} as const

export type Rule = keyof typeof rules

/** Holds a history against what the database has at the end. Pure. */
export function check(entries: Entry[], records: Records): Violation[] {
  return [
    ...checkMessages(entries, records),
    ...checkStreams(entries, records),
    ...checkHistories(entries, records),
    ...checkReloads(entries, records),
    ...of(entries, 'revoked').flatMap(({ visitor, streamEnded }) =>
      streamEnded ? [] : [broken('ends', `${visitor}’s stream goes on after its session was revoked`)],
    ),
    ...checkLeads(entries, records),
    ...of(entries, 'refused').map(({ operation, code }) => broken('refused', `${operation}: ${code}`)),
    ...of(entries, 'still live').map(({ what }) => broken('ended', what)),
    ...of(entries, 'stuck').map(({ what }) => broken('goes on', what)),
  ]
}

const broken = (rule: Rule, what: string): Violation => ({ rule, what })

type Kind = Entry['kind']
type EntryOf<K extends Kind> = Extract<Entry, { kind: K }>
const of = <K extends Kind>(entries: Entry[], kind: K) => entries.filter((entry) => entry.kind === kind) as EntryOf<K>[]

function checkMessages(entries: Entry[], { events }: Records): Violation[] {
  const violations: Violation[] = []
  // Different conversations may have operations of one name.
  const nameOf = ({ conversationId, operation }: { conversationId: string; operation?: string }) =>
    `${operation} in ${conversationId}`
  const sent = new Set(of(entries, 'sent').map(nameOf))
  const made = Map.groupBy(
    events.filter(({ operation }) => operation !== undefined),
    nameOf,
  )
  for (const [operation, all] of made) {
    if (all.length > 1) violations.push(broken('once', `${operation} is in the log ${all.length} times`))
    if (!sent.has(operation)) violations.push(broken('once', `${operation} is in the log and was never sent`))
  }
  for (const { operation, conversationId, messageId, sequence } of of(entries, 'acknowledged')) {
    const all = made.get(nameOf({ conversationId, operation })) ?? []
    const isThere = all.some(
      (event) =>
        event.messageId === messageId && event.sequence === sequence && event.conversationId === conversationId,
    )
    if (isThere) continue
    const found = all.map((event) => `${event.messageId} at ${event.sequence}`).join(', ') || 'nothing'
    violations.push(
      broken('acknowledged', `${operation} was acknowledged as ${messageId} at ${sequence}; the log has ${found}`),
    )
  }
  return violations
}

function checkStreams(entries: Entry[], { events }: Records): Violation[] {
  const logs = Map.groupBy(events, ({ conversationId }) => conversationId)
  return of(entries, 'session').flatMap(({ visitor, sessionId, conversationId }) => {
    const starts = of(entries, 'stream').filter((entry) => entry.visitor === visitor)
    if (starts.length === 0) return []
    const seen = of(entries, 'event').filter((entry) => entry.visitor === visitor)
    const log = (logs.get(conversationId) ?? []).filter(
      (event) => !event.transient && (event.sessionId === undefined || event.sessionId === sessionId),
    )
    return checkStream(visitor, starts[0]!.after, seen, log)
  })
}

function checkStream(visitor: string, start: number, seen: EntryOf<'event'>[], log: RecordedEvent[]): Violation[] {
  const violations: Violation[] = []
  let last = start
  for (const { type, sequence, text } of seen) {
    if (type === 'replay.reset.required') {
      violations.push(broken('whole', `${visitor} was told at ${last} to begin anew`))
      continue
    }
    if (sequence <= last) violations.push(broken('growing', `${visitor} got ${sequence} (${type}) after ${last}`))
    last = Math.max(last, sequence)
    if (text !== undefined && ownerOf(text) !== visitor) {
      violations.push(broken('isolated', `${visitor} got what is ${ownerOf(text)}’s, at ${sequence}`))
    }
  }
  const bySequence = new Map(seen.map((event) => [event.sequence, event]))
  const logged = new Map(log.map((event) => [event.sequence, event]))
  for (const { sequence, type } of log) {
    if (sequence > start && !bySequence.has(sequence))
      violations.push(broken('whole', `${visitor} never got ${sequence} (${type}), and has ${last}`))
  }
  for (const event of seen) {
    if (passes(event.type)) continue
    const there = logged.get(event.sequence)
    if (there?.type === event.type && there.messageId === event.messageId) continue
    const found = there ? `${there.type} ${there.messageId ?? ''}` : 'nothing'
    violations.push(
      broken(
        'true',
        `${visitor} got ${event.type} ${event.messageId ?? ''} at ${event.sequence}; the log has ${found}`,
      ),
    )
  }
  return violations
}

/** Leaves no trace in the log, or not for long. */
const passes = (type: string) => type.startsWith('typing.') || type === 'replay.reset.required'

function checkHistories(entries: Entry[], { events }: Records): Violation[] {
  const violations: Violation[] = []
  const conversations = new Map(of(entries, 'session').map((entry) => [entry.visitor, entry.conversationId]))
  const placeOf = (conversationId: string | undefined, messageId: string, sequence: number) =>
    `${conversationId} ${messageId} ${sequence}`
  const logged = new Set(
    events.map(({ conversationId, messageId = '', sequence }) => placeOf(conversationId, messageId, sequence)),
  )
  const acknowledged = new Map<string, EntryOf<'acknowledged'>[]>()
  const known = new Map<number, number>()
  for (const entry of entries) {
    if (entry.kind === 'acknowledged') {
      const soFar = acknowledged.get(entry.conversationId)
      if (soFar) soFar.push(entry)
      else acknowledged.set(entry.conversationId, [entry])
    } else if (entry.kind === 'history asked') {
      known.set(entry.read, acknowledged.get(conversations.get(entry.visitor) ?? '')?.length ?? 0)
    } else if (entry.kind === 'history') {
      const { visitor, read, messages } = entry
      const conversationId = conversations.get(visitor)
      const ids = new Set(messages.map(({ messageId }) => messageId))
      const before = (acknowledged.get(conversationId ?? '') ?? []).slice(0, known.get(read))
      for (const { operation, messageId } of before) {
        if (!ids.has(messageId)) violations.push(broken('history', `${visitor}’s lacks ${operation}`))
      }
      for (const [index, { messageId, sequence, text }] of messages.entries()) {
        if (index > 0 && sequence <= messages[index - 1]!.sequence)
          violations.push(broken('history', `${visitor}’s has ${sequence} after ${messages[index - 1]!.sequence}`))
        if (ownerOf(text) !== visitor)
          violations.push(broken('isolated', `${visitor}’s history has what is ${ownerOf(text)}’s, at ${sequence}`))
        if (!logged.has(placeOf(conversationId, messageId, sequence)))
          violations.push(
            broken('true', `${visitor}’s history had ${messageId} at ${sequence}; the log has it no more`),
          )
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
  const conversations = new Map(of(entries, 'session').map((entry) => [entry.visitor, entry.conversationId]))
  return of(entries, 'reload').flatMap(({ visitor, lastSequence, pages, streamed }) => {
    const end = Math.max(lastSequence, ...streamed)
    const log = (logs.get(conversations.get(visitor) ?? '') ?? []).filter(({ sequence }) => sequence <= end)
    const times = Map.groupBy([...pages, ...streamed], (sequence) => sequence)
    return log.flatMap(({ sequence }) => {
      const count = times.get(sequence)?.length ?? 0
      return count === 1
        ? []
        : [broken('reload', `${visitor} had ${sequence} ${count} times, pages up to ${lastSequence}`)]
    })
  })
}

function checkLeads(entries: Entry[], { leads, subscriptions, deliveries }: Records): Violation[] {
  const violations: Violation[] = []
  const there = new Set(leads)
  const arrived = of(entries, 'delivery')
  for (const { deliveryId, leadId } of [...arrived, ...deliveries]) {
    if (!there.has(leadId)) violations.push(broken('lead there', `${deliveryId} is of ${leadId}, which is not there`))
  }
  const received = new Set(arrived.map(({ deliveryId }) => deliveryId))
  const ofLead = Map.groupBy(deliveries, ({ leadId }) => leadId)
  // A lead whose capture was not acknowledged may be there; then it goes out like any other.
  for (const leadId of new Set([...of(entries, 'lead').map((lead) => lead.leadId), ...leads])) {
    const made = ofLead.get(leadId) ?? []
    for (const subscriptionId of subscriptions) {
      const all = made.filter((delivery) => delivery.subscriptionId === subscriptionId)
      if (all.length !== 1)
        violations.push(broken('lead kept', `${leadId} has ${all.length} deliveries for ${subscriptionId}`))
      for (const { deliveryId, status } of all) {
        if (status !== 'accepted' || !received.has(deliveryId))
          violations.push(
            broken('lead kept', `${deliveryId} is ${status}, ${received.has(deliveryId) ? '' : 'not '}received`),
          )
      }
    }
  }
  const lost = new Set(of(entries, 'claim lost').map(({ deliveryId, claimId }) => `${deliveryId} ${claimId}`))
  for (const { claimId, counted } of of(entries, 'late result')) {
    if (counted) violations.push(broken('fenced', `the core took a result under ${claimId}, which was lost`))
  }
  for (const { deliveryId, claims } of deliveries) {
    for (const claimId of claims) {
      if (lost.has(`${deliveryId} ${claimId}`))
        violations.push(broken('fenced', `${deliveryId} has an outcome under ${claimId}, which was lost`))
    }
  }
  return violations
}
