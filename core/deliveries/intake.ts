import { type DeliveryEvent, type DeliveryEventType, deliveryEvents } from '../../contract/event-kinds.ts'
import { type FieldMapping, sampleFields, sentFields } from '../../contract/lead-fields.ts'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { activeContext, type Context, inDatabaseSpan, traceparentOf } from '../../platform/observability/tracing.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import { announceMarked } from '../leads/leads.ts'
import type { Lead } from '../leads/model.ts'
import { insertEach } from '../mongodb/insert-each.ts'
import { deliveryDispatchOf, type StreamingWorker } from './dispatch.ts'
import type { KnownSubscription } from './live-subscriptions.ts'
import { type AttemptOutcome, type Delivery, type DeliveryOperation, type NewDelivery, newAttempt } from './model.ts'
import { retainedUntil, suppressedOutcome } from './outcomes.ts'
import { announceDue } from './queue.ts'
import { changedSourcesOf, findSendable } from './sources.ts'
import { defaultPolicy, isHook, type LeadSubscription, type Receives } from './subscription-model.ts'
import { makeRequest, type SigningSecrets, signingSecretsOf } from './webhook-requests.ts'

interface Arrival {
  delivery: NewDelivery
  by: KnownSubscription
  conversationId: string | undefined
  origin: Context
}

interface Prepared extends Arrival {
  given?: { worker: StreamingWorker; secrets: SigningSecrets }
}

const arrivalsOf = perCore((core) => createBatcher((arrivals: Arrival[]) => insertAll(core, arrivals)))

/**
 * Inserts a new delivery. Returns false for a duplicate operation. If a worker with a stream on this core
 * has room, the insert also claims the delivery, and the worker gets it at once. Otherwise it is queued,
 * and all cores are told. `conversationId` is that of its lead.
 */
export const addDelivery = (
  core: Core,
  delivery: NewDelivery,
  by: KnownSubscription,
  conversationId: string | undefined = delivery.conversationId,
): Promise<boolean> => arrivalsOf(core).add({ delivery, by, conversationId, origin: activeContext() })

/** Adds a delivery that nobody has requested, once per key. */
export async function addAutomaticDelivery(
  core: Core,
  key: string,
  content: DeliveryContent,
  by: KnownSubscription,
  { isSuppressed, conversationId }: { isSuppressed: boolean; conversationId?: string },
) {
  const { subscription } = by
  const operation = { key, inputHash: hashInput({ key }) }
  await addDelivery(core, newDelivery(core, { content, subscription, operation, isSuppressed }), by, conversationId)
}

async function insertAll(core: Core, arrivals: Arrival[]) {
  const at = dateOf(core)
  const prepared = arrivals.map((arrival) => prepare(core, arrival, at))
  // Some deliveries may be stored all the same. Workers take them over when their leases expire.
  const outcomes = await insert(core, arrivals, documentsOf(prepared)).catch((error: unknown) => {
    for (const each of prepared) freeRoom(each)
    throw error
  })
  const kept = prepared.filter((each, index) => isInserted(outcomes[index]) || freeRoom(each))
  for (const [worker, share] of Map.groupBy(kept, ({ given }) => given?.worker)) await give(core, worker, share, at)
  if (kept.some(({ delivery }) => delivery.status === 'pending')) announceDue(core)
  return outcomes
}

function prepare(core: Core, arrival: Arrival, at: Date): Prepared {
  const { delivery, by } = arrival
  const { subscription, readAt: knownAt } = by
  // Only claims from the queue apply rate limits.
  if (delivery.status !== 'pending' || !delivery.body || subscription.maxPerSecond) return arrival
  const secrets = signingSecretsOf(core, subscription, at)
  const worker = secrets && deliveryDispatchOf(core).reserve(delivery.subscriptionId)
  if (!worker) return arrival
  const { claimId, workerId } = worker
  const claim = { claimId, workerId, at, knownAt }
  const dueAt = new Date(at.getTime() + core.config.DELIVERY_LEASE_MS)
  return { ...arrival, delivery: { ...delivery, status: 'sending', claim, dueAt }, given: { worker, secrets } }
}

function freeRoom({ delivery, given }: Prepared) {
  given?.worker.room.free(delivery.subscriptionId)
  return false
}

function insert(core: Core, arrivals: Arrival[], documents: NewDelivery[]) {
  const origins = arrivals.map(({ origin }) => origin)
  const stored = documents.map(({ deliveryId: _id, ...rest }) => ({ _id, ...rest }))
  return inDatabaseSpan('insert deliveries', { collection: 'deliveries', operation: 'insert', origins }, () =>
    insertEach(core.db.deliveries, stored).finally(() => announceMarked(core, 'deliveries')),
  )
}

/**
 * Sends the worker its deliveries that may be sent. Also checks messages without a worker, so that no
 * stored body keeps a withdrawn text. If the check fails, they are checked again when their leases expire.
 */
async function give(core: Core, worker: StreamingWorker | undefined, share: Prepared[], at: Date) {
  const { checked = [], current = [] } = Object.groupBy(share, ({ delivery, conversationId }) =>
    changedSourcesOf(core).mayHaveChanged([delivery.leadId, conversationId]) ? 'checked' : 'current',
  )
  const found =
    checked.length === 0 ? [] : await findSendable(core, documentsOf(checked), worker?.claimId, at).catch(() => [])
  const bodies = new Map([...documentsOf(current), ...found].map(({ deliveryId, body }) => [deliveryId, body]))
  const ready = share.flatMap((each) => {
    const { delivery, given } = each
    const body = bodies.get(delivery.deliveryId)
    if (given && body) return makeRequest(core, { ...delivery, body }, given.worker.claimId, given.secrets)
    freeRoom(each)
    return []
  })
  core.metrics.claimedDeliveries.inc(ready.length)
  if (ready.length > 0) worker?.send(ready)
}

const documentsOf = (prepared: Prepared[]) => prepared.map(({ delivery }) => delivery)

const isInserted = (outcome: PromiseSettledResult<boolean> | undefined) =>
  outcome?.status === 'fulfilled' && outcome.value

export type DeliveryContent = DeliveryEvent &
  Pick<Delivery, 'leadId' | 'conversationId' | 'messageSequence'> & {
    /** Default: the time of the creation of the delivery. */
    occurredAt?: Date
    isTest?: true
  }

const bodyMaxBytes = 65_536
const tooLargeOutcome: AttemptOutcome = { status: 'failed', responseClass: 'rejected_payload' }

/**
 * Creates a delivery with its first attempt: `held` if the subscription is disabled; `failed` without a
 * body if that is too large; `failed` if the person must not be contacted.
 */
export function newDelivery(
  core: Core,
  options: {
    content: DeliveryContent
    subscription: LeadSubscription
    operation: Omit<DeliveryOperation, 'attemptId'>
    /** Name of the operator or service that asked. Absent for automatic deliveries. */
    requestedBy?: string
    isSuppressed?: boolean
  },
): NewDelivery {
  const { content, subscription, operation, requestedBy, isSuppressed } = options
  const { eventType, leadId, conversationId, messageSequence } = content
  const { subscriptionId, workspaceId, status, workflow } = subscription
  const at = dateOf(core)
  const deliveryId = newId('dlv')
  const body = bodyOf(content, deliveryId, at)
  const isTooLarge = body.length > bodyMaxBytes
  const outcome = isSuppressed ? suppressedOutcome : isTooLarge ? tooLargeOutcome : undefined
  const isPaused = status === 'disabled' && !outcome
  const attempt = newAttempt(at, { manual: requestedBy !== undefined, requestedBy, outcome })
  return {
    deliveryId,
    workspaceId,
    eventType,
    leadId,
    conversationId,
    messageSequence,
    subscriptionId,
    destination: subscriptionId,
    status: outcome ? 'failed' : isPaused ? 'held' : 'pending',
    attempts: [attempt],
    operations: [{ ...operation, attemptId: attempt.attemptId }],
    createdAt: at,
    updatedAt: at,
    traceparent: traceparentOf(),
    ...(isHandedOff(content) && workflow?.workflowId && { workflow }),
    requestedAt: requestedBy === undefined ? undefined : at,
    // Kept for a suppressed person, so that it can be retried after the person is removed from the list.
    ...(!isTooLarge && { body }),
    ...(outcome
      ? { deleteAt: retainedUntil(core, at), unannounced: true }
      : isPaused
        ? { heldDueAt: at }
        : { dueAt: at }),
  }
}

/** Returns the content of a lead, with the mapped fields only (contract, section 5). */
export function leadContent(
  { leadId, fields }: Pick<Lead, 'leadId' | 'fields'>,
  mapping: FieldMapping,
  eventType: 'lead.ready-for-delivery' | 'lead.captured' = 'lead.ready-for-delivery',
): DeliveryContent {
  return { eventType, leadId, data: { reference: leadId, ...sentFields(fields, mapping) } }
}

/** Returns the types of which a destination can get samples. A subscription can always get a lead. */
export function sampleTypes({ policy = defaultPolicy, ...rest }: Receives): DeliveryEventType[] {
  return isHook(rest) ? policy.types : [...new Set([...policy.types, 'lead.ready-for-delivery' as const])]
}

/** Returns a sample of an event, marked with `"test":true`. */
export function testContent(destination: Receives, type: DeliveryEventType): DeliveryContent {
  const { sentAs = {} } = destination
  const eventType = (type in sentAs && sentAs[type as keyof typeof sentAs]) || type
  const { example, ...kind } = deliveryEvents[eventType]
  const fields = 'hasLeadFields' in kind ? sampleFields(destination) : {}
  return { eventType, isTest: true, data: { ...example, ...fields } } as DeliveryContent
}

/** Whether the content is a lead: its end is announced, and a workflow may take it over. */
export const isHandedOff = ({ eventType, leadId }: Pick<Delivery, 'eventType' | 'leadId'>) =>
  leadId !== undefined && eventType === 'lead.ready-for-delivery'

/** The body is created once and stored, so that each attempt sends the same bytes. */
export function bodyOf({ eventType, data, isTest, occurredAt }: DeliveryContent, id: string, at: Date) {
  const contractVersion = deliveryEvents[eventType].version
  const head = { eventType, id, contractVersion, occurredAt: (occurredAt ?? at).toISOString() }
  return new TextEncoder().encode(JSON.stringify({ ...head, ...(isTest && { test: true }), data }))
}
