import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Event } from '#proto/events/v1/events_pb.js'
import type { Delivery } from '#proto/lead/v1/delivery_pb.js'
import { type EventFacts, eventData } from '../../contract/event-data.ts'
import { deliveryEvents, feedEventTypes } from '../../contract/event-kinds.ts'
import { createBackoff } from '../../platform/concurrency/backoff.ts'
import { slicesOf } from '../../platform/concurrency/batcher.ts'
import type { Services } from '../services.ts'

/** Resolves after the time, or when the signal aborts. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<unknown>

interface Following {
  signal: AbortSignal
  report: (line: string) => void
  pause: Pause
}

const pageSize = 50
const waitSeconds = 20
/** A call fails when a core has not answered this long after the end of its wait. */
const answerMs = 5_000

/** Yields the events of a feed until the signal aborts. An empty page says that the core has answered. */
export async function* followFeed(
  { events }: Pick<Services, 'events'>,
  { workspaceId, from, types }: { workspaceId: string; from: string | Date; types: string[] },
  options: Following,
): AsyncGenerator<LocalPage> {
  const since = from instanceof Date ? timestampFromDate(from) : undefined
  let cursor = from instanceof Date ? '' : from
  const read = (wait: number) =>
    events.listEvents(
      { workspaceId, cursor, since, types, limit: pageSize, waitSeconds: wait },
      { signal: options.signal, timeoutMs: wait * 1000 + answerMs },
    )
  // A failed first call is not repeated, because its cause is usually a wrong address, token or workspace.
  for (let page = await read(0); ; ) {
    const found: LocalEvent[] = []
    for (const event of page.events) {
      found.push(fromFeed(event, cursor))
      cursor = event.cursor
    }
    cursor = page.cursor
    yield { events: found, next: cursor }
    const next = await untilAnswered(() => read(waitSeconds), options)
    if (!next) return
    page = next
  }
}

/** Codes of a core that stops, restarts or is too busy. */
const passing = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Internal,
  Code.Unknown,
  Code.Aborted,
  Code.ResourceExhausted,
  Code.Canceled,
])
const pauses = { minMs: 250, maxMs: 5_000 }

/**
 * Repeats a call while the core does not answer it. Returns undefined if the signal aborts. Throws errors that a
 * repeat does not change.
 */
async function untilAnswered<T>(call: () => Promise<T>, { signal, report }: Following) {
  for (const backoff = createBackoff(pauses); !signal.aborted; await backoff.pause(signal)) {
    try {
      const answer = await call()
      if (backoff.failures() > 0) report('the core answers again')
      return answer
    } catch (reason) {
      if (signal.aborted) return undefined
      const error = ConnectError.from(reason)
      if (!passing.has(error.code)) throw error
      if (backoff.failures() === 0) report(`the core does not answer (${Code[error.code]}); retrying`)
    }
  }
  return undefined
}

const everyMs = 1_000
/** Reads this much again, because a delivery may be stored after a newer one. */
const overlapMs = 10_000
const timeoutMs = 5_000

/** Yields the lead deliveries of a subscription, oldest first, with the body that the destination gets. */
export async function* followSubscription(
  { leads }: Pick<Services, 'leads'>,
  { workspaceId, subscriptionId, from }: { workspaceId: string; subscriptionId: string; from: Date },
  options: Following,
): AsyncGenerator<LocalPage> {
  const { signal, pause } = options
  const known = new Map<string, number>()
  let since = from.getTime()

  async function newDeliveries() {
    const created = timestampFromDate(new Date(Math.max(from.getTime(), since - overlapMs)))
    const found: Delivery[] = []
    for (let pageToken = '', isLast = false; !isLast; isLast = pageToken === '') {
      const query = { workspaceId, subscriptionId, createdSince: created, limit: 100, pageToken }
      const page = await leads.listDeliveries(query, { signal, timeoutMs })
      found.push(...page.deliveries.filter(({ deliveryId }) => !known.has(deliveryId)))
      pageToken = page.nextPageToken
    }
    return found.reverse()
  }

  async function read(): Promise<LocalEvent[]> {
    const found = await newDeliveries()
    const ids = [...new Set(found.flatMap(({ leadId }) => leadId || []))]
    const [subscription, fields] = await Promise.all([
      leads.getSubscription({ subscriptionId }, { signal, timeoutMs }),
      fieldsOf(ids),
    ])
    const mapped = subscription.subscription?.mappedFields ?? []
    const events = found.flatMap((delivery) => bodyOf(delivery, fields.get(delivery.leadId), mapped))
    for (const { deliveryId, createdAt } of found) {
      known.set(deliveryId, timestampDate(createdAt!).getTime())
      since = Math.max(since, known.get(deliveryId)!)
    }
    for (const [id, at] of known) if (at < since - 2 * overlapMs) known.delete(id)
    return events
  }

  async function fieldsOf(leadIds: string[]) {
    const fields = new Map<string, Record<string, string>>()
    for (const part of slicesOf(leadIds, 100)) {
      const query = { workspaceId, leadIds: part, limit: 100 }
      for (const lead of (await leads.listLeads(query, { signal, timeoutMs })).leads)
        fields.set(lead.leadId, lead.fields)
    }
    return fields
  }

  // As in `followFeed`, a failed first call is not repeated.
  for (let events: LocalEvent[] | undefined = await read(); events; events = await untilAnswered(read, options)) {
    yield { events, next: new Date(since).toISOString() }
    await pause(everyMs, signal)
  }
}

/** Returns an empty list if the delivery has no lead, or its lead was removed. */
function bodyOf(
  { deliveryId, leadId, latestAttempt, createdAt }: Delivery,
  fields: Record<string, string> | undefined,
  mapped: string[],
): LocalEvent[] {
  if (!fields) return []
  const at = timestampDate(createdAt!)
  const sent = mapped.filter((name) => Object.hasOwn(fields, name)).map((name) => [name, fields[name]])
  const data = { reference: leadId, ...Object.fromEntries(sent) }
  const type = latestAttempt?.eventType ?? 'lead.ready-for-delivery'
  return [localEvent({ id: deliveryId, type, occurredAt: at, data, replayFrom: at.toISOString() })]
}

export interface LocalEvent {
  id: string
  type: string
  body: Uint8Array
  /** `--replay` with this value sends the event again, and those after it. */
  replayFrom: string
}

interface LocalPage {
  events: LocalEvent[]
  /** Cursor after these events. `--replay` with this value continues there. */
  next: string
}

function localEvent(event: Omit<LocalEvent, 'body'> & { occurredAt: Date; data: object }): LocalEvent {
  const { id, type, occurredAt, data, replayFrom } = event
  const contractVersion = Object.hasOwn(deliveryEvents, type)
    ? deliveryEvents[type as keyof typeof deliveryEvents].version
    : '1.0'
  const envelope = { eventType: type, id, contractVersion, occurredAt: occurredAt.toISOString(), data }
  return { id, type, replayFrom, body: new TextEncoder().encode(JSON.stringify(envelope)) }
}

/** Returns an event of the feed. Its id is the same each time, because it is made from the cursor. */
const fromFeed = (event: Event, replayFrom: string): LocalEvent =>
  localEvent({
    id: `evt_${event.cursor.replaceAll('.', '_')}`,
    type: event.type,
    occurredAt: timestampDate(event.occurredAt!),
    data: dataOf(event),
    replayFrom,
  })

function factsOf(event: Event) {
  const { conversationId, sequence, leadId, workflowId, delivery, subscriptionDisabled: disabled } = event
  const message = event.message?.message
  return {
    conversationId,
    sequence,
    messageId: message?.messageId ?? event.redactedMessageId,
    body: message?.body,
    displayName: message ? message.author?.displayName : event.assignment?.agent?.displayName,
    sessionId: event.visitor?.sessionId,
    leftReason: event.visitor?.reason as EventFacts['leftReason'],
    tag: event.tagChange?.tag,
    score: event.rating?.score,
    comment: event.rating?.comment,
    leadId,
    subscriptionId: delivery?.subscriptionId ?? disabled?.subscriptionId,
    deliveryId: delivery?.deliveryId,
    workflowId,
    outcome: delivery?.outcome as EventFacts['outcome'],
    disabledReason: disabled?.reason as EventFacts['disabledReason'],
  }
}

function dataOf(event: Event): object {
  const { conversationId, lead } = event
  const type = feedEventTypes.find((each) => each === event.type)
  // A newer core may send other types.
  if (type === undefined) return { reference: conversationId, conversationId }
  const data = eventData(type, factsOf(event))
  return type === 'lead.captured' ? { ...data, ...lead?.fields } : data
}
