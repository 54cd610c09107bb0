import { setTimeout as delay } from 'node:timers/promises'
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Event } from '#proto/events/v1/events_pb.js'
import type { Delivery } from '#proto/lead/v1/delivery_pb.js'
import { allPages } from '../../contract/all-pages.ts'
import { type EventFacts, eventData } from '../../contract/event-data.ts'
import { deliveryEvents, feedEventTypes } from '../../contract/event-kinds.ts'
import { type FieldMapping, sentFields } from '../../contract/lead-fields.ts'
import { createBackoff } from '../../platform/concurrency/backoff.ts'
import { slicesOf } from '../../platform/concurrency/batcher.ts'
import type { Services } from '../services.ts'

interface Following {
  signal: AbortSignal
  report: (line: string) => void
}

const pageSize = 50
const waitSeconds = 20
/** A call fails when a core has not answered this long after the end of its wait. */
const answerMs = 5_000

/** Yields the events of a feed until the signal aborts. An empty page says that the core has answered. */
export function followFeed(
  { events }: Pick<Services, 'events'>,
  { workspaceId, from, types }: { workspaceId: string; from: string | Date; types: string[] },
  following: Following,
) {
  const since = from instanceof Date ? timestampFromDate(from) : undefined
  let cursor = from instanceof Date ? '' : from
  let wait = 0
  return follow(async () => {
    const page = await events.listEvents(
      { workspaceId, cursor, since, types, limit: pageSize, waitSeconds: wait },
      { signal: following.signal, timeoutMs: wait * 1000 + answerMs },
    )
    wait = waitSeconds
    const found = page.events.map((event, index) => fromFeed(event, page.events[index - 1]?.cursor ?? cursor))
    cursor = page.cursor
    return { events: found, next: cursor }
  }, following)
}

/**
 * Yields the page of each call until the signal aborts. A failed first call is not repeated, because its cause is
 * usually a wrong address, token or workspace.
 */
async function* follow(read: () => Promise<LocalPage>, following: Following, pauseMs = 0): AsyncGenerator<LocalPage> {
  for (let page: LocalPage | undefined = await read(); page; page = await untilAnswered(read, following)) {
    yield page
    await delay(pauseMs, undefined, { signal: following.signal }).catch(() => {})
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
export function followSubscription(
  { leads }: Pick<Services, 'leads'>,
  { workspaceId, subscriptionId, from }: { workspaceId: string; subscriptionId: string; from: Date },
  following: Following,
) {
  const options = { signal: following.signal, timeoutMs }
  const known = new Map<string, number>()
  let since = from.getTime()

  async function newDeliveries() {
    const createdSince = timestampFromDate(new Date(Math.max(from.getTime(), since - overlapMs)))
    const query = { workspaceId, subscriptionId, createdSince, limit: 100 }
    const pages = await allPages((pageToken) => leads.listDeliveries({ ...query, pageToken }, options))
    return pages
      .flatMap(({ deliveries }) => deliveries)
      .filter(({ deliveryId }) => !known.has(deliveryId))
      .reverse()
  }

  async function fieldsOf(leadIds: string[]) {
    const fields = new Map<string, Record<string, string>>()
    for (const part of slicesOf(leadIds, 100))
      for (const lead of (await leads.listLeads({ workspaceId, leadIds: part, limit: 100 }, options)).leads)
        fields.set(lead.leadId, lead.fields)
    return fields
  }

  async function read() {
    const found = await newDeliveries()
    const ids = [...new Set(found.flatMap(({ leadId }) => leadId || []))]
    const [{ subscription }, fields] = await Promise.all([
      leads.getSubscription({ subscriptionId }, options),
      fieldsOf(ids),
    ])
    const events = found.flatMap((delivery) => bodyOf(delivery, fields.get(delivery.leadId), subscription!))
    for (const { deliveryId, createdAt } of found) {
      known.set(deliveryId, timestampDate(createdAt!).getTime())
      since = Math.max(since, known.get(deliveryId)!)
    }
    for (const [id, at] of known) if (at < since - 2 * overlapMs) known.delete(id)
    return { events, next: new Date(since).toISOString() }
  }

  return follow(read, following, everyMs)
}

/** Returns an empty list if the delivery has no lead, or its lead was removed. */
function bodyOf(
  { deliveryId, leadId, latestAttempt, createdAt }: Delivery,
  fields: Record<string, string> | undefined,
  mapping: FieldMapping,
): LocalEvent[] {
  if (!fields) return []
  const at = timestampDate(createdAt!)
  const data = { reference: leadId, ...sentFields(fields, mapping) }
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
