import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { Delivery } from '#proto/lead/v1/delivery_pb.js'
import { slicesOf } from '../../platform/concurrency/batcher.ts'
import type { Services } from '../services.ts'
import { type Following, untilAnswered } from './follow-feed.ts'
import { type LocalEvent, type LocalPage, localEvent } from './local-event.ts'

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

/** Returns nothing for a delivery without a lead, or whose lead was removed. */
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
