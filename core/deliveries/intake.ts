import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { activeContext, batchOrigin, type Context, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import { type Core, perCore } from '../core.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { announceMarked } from '../leads/leads.ts'
import { insertEach } from '../mongodb/insert-each.ts'
import { deliveryDispatchOf, type JoinedWorker } from './dispatch.ts'
import type { KnownSubscription } from './live-subscriptions.ts'
import type { NewDelivery } from './model.ts'
import { type DeliveryContent, newDelivery } from './new-delivery.ts'
import { announceDue } from './queue.ts'
import { changedSourcesOf, findSendable } from './sources.ts'
import type { LeadSubscription } from './subscription-model.ts'
import { makeRequest, type SigningSecrets, signingSecretsOf } from './webhook-requests.ts'

interface Arrival {
  delivery: NewDelivery
  by: KnownSubscription
  conversationId: string | undefined
  origin: Context
}

/** A new delivery and, if a worker has room for it, that worker with the secrets for the request. */
interface Prepared {
  document: NewDelivery
  conversationId: string | undefined
  given?: { worker: JoinedWorker; subscription: LeadSubscription; secrets: SigningSecrets }
}

const arrivalsOf = perCore((core) => createBatcher((arrivals: Arrival[]) => insertAll(core, arrivals)))

/**
 * Inserts a new delivery. Returns false for a duplicate operation. If a worker with a stream on
 * this core has room, the insert also claims the delivery for that worker, and the worker gets it
 * at once. Otherwise the delivery is queued, and all cores are told. `conversationId` is the
 * conversation of its lead.
 */
export const addDelivery = (
  core: Core,
  delivery: NewDelivery,
  by: KnownSubscription,
  conversationId: string | undefined = delivery.conversationId,
): Promise<boolean> => arrivalsOf(core).add({ delivery, by, conversationId, origin: activeContext() })

/** Adds a delivery that nobody has requested. Does nothing if the key has a delivery. */
export async function addAutomaticDelivery(
  core: Core,
  key: string,
  content: DeliveryContent,
  by: KnownSubscription,
  { isSuppressed, conversationId }: { isSuppressed: boolean; conversationId?: string },
) {
  const { subscription } = by
  const operation = { key, inputHash: hashInput({ key }) }
  const { isTooLarge: _, ...delivery } = newDelivery(core, { content, subscription, operation, isSuppressed })
  await addDelivery(core, delivery, by, conversationId)
}

async function insertAll(core: Core, arrivals: Arrival[]): Promise<PromiseSettledResult<boolean>[]> {
  const at = new Date(core.now())
  const prepared = arrivals.map((arrival) => prepare(core, arrival, at))
  // If the call fails, some deliveries may be stored all the same. A worker takes them over when
  // their leases expire.
  const outcomes = await insert(core, arrivals, documentsOf(prepared)).catch((error: unknown) => {
    for (const each of prepared) freeRoom(each)
    throw error
  })
  const kept = prepared.filter((each, index) => isInserted(outcomes[index]) || freeRoom(each))
  for (const [worker, share] of Map.groupBy(kept, ({ given }) => given?.worker)) await give(core, worker, share, at)
  if (kept.some(({ document }) => document.status === 'pending')) announceDue(core)
  return outcomes
}

/** Claims the delivery for a worker with room for it, if there is one. */
function prepare(core: Core, { delivery, by, conversationId }: Arrival, at: Date): Prepared {
  const { subscription } = by
  // Only claims from the queue apply rate limits. So a delivery to a destination with a rate
  // limit is queued.
  if (delivery.status !== 'pending' || !delivery.body || subscription.maxPerSecond)
    return { document: delivery, conversationId }
  const secrets = signingSecretsOf(core, subscription, at)
  const worker = secrets && deliveryDispatchOf(core).reserve(delivery.subscriptionId)
  if (!worker) return { document: delivery, conversationId }
  const { claimId, workerId } = worker
  const claim = { claimId, workerId, at, knownAt: by.readAt }
  const dueAt = new Date(at.getTime() + core.config.DELIVERY_LEASE_MS)
  const document = { ...delivery, status: 'sending' as const, claim, dueAt }
  return { document, conversationId, given: { worker, subscription, secrets } }
}

function freeRoom({ document, given }: Prepared): false {
  given?.worker.room.free(document.subscriptionId)
  return false
}

function insert(core: Core, arrivals: Arrival[], documents: NewDelivery[]) {
  const origin = batchOrigin(arrivals.map((arrival) => arrival.origin))
  const attributes = { ...insertAttributes, 'db.operation.batch.size': documents.length }
  return inSpan('insert deliveries', { ...origin, kind: SpanKind.CLIENT, attributes }, () =>
    insertEach(
      core.db.deliveries,
      documents.map(({ deliveryId: _id, ...rest }) => ({ _id, ...rest })),
    ).finally(() => announceMarked(core)),
  )
}

/**
 * Sends the worker its deliveries that may be sent. Also checks messages without a worker, so that no
 * stored body keeps a withdrawn text. If the check fails, the deliveries wait until their leases
 * expire, and are checked again.
 */
async function give(core: Core, worker: JoinedWorker | undefined, share: Prepared[], at: Date) {
  const { checked = [], current = [] } = Object.groupBy(share, ({ document, conversationId }) =>
    changedSourcesOf(core).mayHaveChanged([document.leadId, conversationId]) ? 'checked' : 'current',
  )
  const found =
    checked.length === 0 ? [] : await findSendable(core, documentsOf(checked), worker?.claimId, at).catch(() => [])
  const bodies = new Map([...documentsOf(current), ...found].map(({ deliveryId, body }) => [deliveryId, body]))
  const ready = share.flatMap((each) => {
    const { document, given } = each
    const body = bodies.get(document.deliveryId)
    if (given && body) return makeRequest(core, { ...document, body }, { claimId: given.worker.claimId, ...given })
    freeRoom(each)
    return []
  })
  core.metrics.claimedDeliveries.inc(ready.length)
  if (ready.length > 0) worker?.send(ready)
}

const insertAttributes = {
  'db.system.name': 'mongodb',
  'db.collection.name': 'deliveries',
  'db.operation.name': 'insert',
}

const documentsOf = (prepared: Prepared[]) => prepared.map(({ document }) => document)

const isInserted = (outcome: PromiseSettledResult<boolean> | undefined) =>
  outcome?.status === 'fulfilled' && outcome.value
