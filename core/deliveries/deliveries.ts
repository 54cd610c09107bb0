import type { Filter } from 'mongodb'
import type { DeliveryEventType } from '../../contract/event-kinds.ts'
import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { inWorkspace, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { findLeads, getLead } from '../leads/leads.ts'
import type { Lead } from '../leads/model.ts'
import { findSuppressedLeads } from '../leads/suppressions.ts'
import { unlessDuplicate } from '../mongodb/faults.ts'
import { cutPage, type PageRequest, readPageToken } from '../page-token.ts'
import { field, integer, issueIf, oneOf, operationId, validate } from '../rules.ts'
import { addDelivery, type DeliveryContent, leadContent, newDelivery, sampleTypes, testContent } from './intake.ts'
import { type KnownSubscription, liveSubscriptionsOf } from './live-subscriptions.ts'
import {
  type Delivery,
  type DeliveryDocument,
  type DeliveryQuery,
  deliveryStatuses,
  newAttempt,
  toDelivery,
} from './model.ts'
import { announceDue, queueAgain } from './queue.ts'
import { isHook } from './subscription-model.ts'
import type { Requester } from './subscriptions.ts'

const maxPage = 100
const defaultPage = 50
/** Manual attempts count too. */
export const maxAttempts = 50
const maxOfLead = 100
const withoutBody = { projection: { body: 0 } } as const

const leadLoaderOf = perCore((core) =>
  createBatchLoader(async (ids) => byKey(await findLeads(core, ids), ({ leadId }) => leadId)),
)

/**
 * Sends a lead to a subscription's destination, once per idempotency key and workspace. A hook counts as
 * unknown. Errors: `LeadNotFound`, `SubscriptionNotFound`, `SubscriptionDisabled`, `IdempotencyConflict`,
 * `ValidationFailed`, `PayloadTooLarge`, `VisitorSuppressed`.
 */
export async function createAttempt(
  core: Core,
  { leadId, subscriptionId, idempotencyKey }: { leadId: string; subscriptionId: string; idempotencyKey: string },
  by: Requester,
) {
  validate(field('/idempotencyKey', idempotencyKey, operationId))
  const [found, known] = await Promise.all([leadLoaderOf(core)(leadId), liveSubscriptionsOf(core).find(subscriptionId)])
  const lead = inWorkspace(found, by.workspaceId, 'LeadNotFound')
  const { workspaceId } = lead
  const operation = operationOf(workspaceId, 'create', idempotencyKey, { leadId, subscriptionId })
  return once(core, operation, async () => {
    const to = requireEnabled(known, workspaceId)
    if (isHook(to.subscription)) throw new ServiceError('SubscriptionNotFound')
    await requireUnsuppressed(core, [lead])
    return add(core, leadContent(lead, to.subscription), to, operation, by)
  })
}

/**
 * Sends a sample of an event that the destination receives, by default of the first one, once per
 * idempotency key and workspace. Errors: those of `createAttempt`.
 */
export async function sendTest(
  core: Core,
  { subscriptionId, idempotencyKey, eventType }: { subscriptionId: string; idempotencyKey: string; eventType?: string },
  by: Requester,
) {
  validate(field('/idempotencyKey', idempotencyKey, operationId))
  const known = await liveSubscriptionsOf(core).find(subscriptionId)
  const subscription = inWorkspace(known?.subscription, by.workspaceId, 'SubscriptionNotFound')
  const { workspaceId } = subscription
  const operation = operationOf(workspaceId, 'test', idempotencyKey, { subscriptionId, eventType })
  return once(core, operation, async () => {
    const types = sampleTypes(subscription)
    const type = (eventType ?? types[0]) as DeliveryEventType
    validate(field('/eventType', type, oneOf(...types)))
    const to = requireEnabled(known, workspaceId)
    return add(core, testContent(to.subscription, type), to, operation, by)
  })
}

async function add(
  core: Core,
  content: DeliveryContent,
  to: KnownSubscription,
  operation: Operation,
  { subject: requestedBy }: Requester,
) {
  const { subscription } = to
  const delivery = newDelivery(core, { content, subscription, operation, requestedBy })
  if (!delivery.body) throw new ServiceError('PayloadTooLarge')
  // The unique index detects a repeated key, so no lookup is needed before the insert.
  return (await addDelivery(core, delivery, to)) ? viewAttempt(delivery, 0) : undefined
}

/**
 * Returns what `run` adds, or the attempt of an earlier request with the same key (`existing`), even if `run`
 * throws.
 */
async function once(core: Core, operation: Operation, run: () => Promise<AttemptView | undefined>) {
  let failure: unknown
  try {
    const attempt = await run()
    if (attempt) return { attempt, existing: false }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    failure = error
  }
  const earlier = await findRepeated(core, operation)
  if (!earlier) throw failure ?? new ServiceError('InternalError')
  return earlier
}

async function findRepeated(core: Core, { key, inputHash }: Operation) {
  const delivery = await findDelivery(core, { 'operations.key': key })
  const operation = delivery?.operations.find((done) => done.key === key)
  if (!delivery || !operation) return undefined
  if (operation.inputHash !== inputHash) throw new ServiceError('IdempotencyConflict')
  const index = delivery.attempts.findIndex(({ attemptId }) => attemptId === operation.attemptId)
  return { attempt: viewAttempt(delivery, index), existing: true }
}

function requireEnabled(known: KnownSubscription | undefined, workspaceId: string) {
  if (known?.subscription.workspaceId !== workspaceId) throw new ServiceError('SubscriptionNotFound')
  if (known.subscription.status === 'disabled') throw new ServiceError('SubscriptionDisabled')
  return known
}

async function requireUnsuppressed(core: Core, leads: Lead[]) {
  if ((await findSuppressedLeads(core, leads)).size > 0) throw new ServiceError('VisitorSuppressed')
}

/**
 * Adds a manual attempt to the delivery of the given attempt. It is due at once and replaces the scheduled
 * one. With `ofLead`, an attempt of an event hook counts as unknown. Errors: `AttemptNotFound`,
 * `AttemptNotRetryable`, `SubscriptionDisabled`, `VisitorSuppressed`, `IdempotencyConflict`,
 * `ValidationFailed`.
 */
export async function retryAttempt(
  core: Core,
  { attemptId, ofLead, idempotencyKey }: { attemptId: string; ofLead?: boolean; idempotencyKey: string },
  by: Requester,
) {
  validate(field('/idempotencyKey', idempotencyKey, operationId))
  const found = await findDelivery(core, { 'attempts.attemptId': attemptId })
  const delivery = inWorkspace(found, by.workspaceId, 'AttemptNotFound')
  const { workspaceId, deliveryId, subscriptionId, status, leadId } = delivery
  const known = await liveSubscriptionsOf(core).find(subscriptionId)
  if (ofLead && known && isHook(known.subscription)) throw new ServiceError('AttemptNotFound')
  const operation = operationOf(workspaceId, 'retry', idempotencyKey, { attemptId })
  return once(core, operation, async () => {
    if (status === 'pending' || status === 'sending' || status === 'accepted')
      throw new ServiceError('AttemptNotRetryable')
    requireEnabled(known, workspaceId)
    await requireUnsuppressed(core, leadId === undefined ? [] : await findLeads(core, [leadId]))
    const at = dateOf(core)
    const attempt = newAttempt(at, { manual: true, requestedBy: by.subject })
    const added = { ...operation, attemptId: attempt.attemptId }
    const retryable: Filter<DeliveryDocument> = {
      _id: deliveryId,
      $or: [
        { status: { $in: ['retry_scheduled', 'failed', 'dead_lettered'] } },
        { status: 'held', next: { $exists: true } },
      ],
      body: { $exists: true },
      'operations.key': { $ne: operation.key },
      [`attempts.${maxAttempts - 1}`]: { $exists: false },
    }
    const update = queueAgain({ at, dueAt: at, requestedAt: at, attempt, operation: added })
    const updating = core.db.deliveries.findOneAndUpdate(retryable, update, { returnDocument: 'after', ...withoutBody })
    // A concurrent request with the same key may have created an attempt of another delivery.
    const retried = await unlessDuplicate(updating)
    if (!retried) throw new ServiceError('AttemptNotRetryable')
    announceDue(core)
    return viewAttempt(toDelivery(retried), retried.attempts.length - 1)
  })
}

/** Returns attempts, oldest delivery first. Errors: `LeadNotFound`, or `NotFound` for a delivery. */
export async function listAttempts(
  core: Core,
  of: { leadId: string } | { deliveryId: string },
  { workspaceId }: Requester,
) {
  if ('deliveryId' in of)
    return viewAttempts(inWorkspace(await findDelivery(core, { _id: of.deliveryId }), workspaceId))
  await getLead(core, of.leadId, workspaceId)
  return (await deliveriesOfLead(core, of.leadId, maxOfLead)).reverse().flatMap(viewAttempts)
}

export const deliveriesOfLead = (core: Core, leadId: string, limit: number) =>
  findMany(core, { leadId }, limit, 'by_lead')

export async function listDeliveries(
  core: Core,
  { limit = defaultPage, pageToken, ...query }: Omit<DeliveryQuery, 'before'> & PageRequest,
) {
  const { since, until } = query
  validate(
    field('/limit', limit, integer(1, maxPage)),
    issueIf(since && until && since >= until, '/createdUntil', 'minimum'),
  )
  const place = `deliveries ${query.workspaceId}`
  const found = await findDeliveries(core, { ...query, before: readPageToken(place, pageToken) }, limit + 1)
  const { page, nextPageToken } = cutPage(found, limit, place, ({ createdAt: at, deliveryId: id }) => ({ at, id }))
  return { deliveries: page, nextPageToken }
}

/**
 * Returns deliveries, newest first. Reads the statuses in the order in which a delivery passes through
 * them, so one that changes meanwhile is found with its new status.
 */
export async function findDeliveries(core: Core, query: DeliveryQuery, limit: number): Promise<Delivery[]> {
  const { workspaceId, subscriptionId, leadId, statuses = deliveryStatuses, since, until, before } = query
  const filter: Filter<DeliveryDocument> = {
    workspaceId,
    subscriptionId,
    leadId,
    createdAt: { $gte: since ?? new Date(0), $lt: until, $lte: before?.at },
    $or: before && [{ createdAt: { $lt: before.at } }, { _id: { $lt: before.id } }],
  }
  // A lead has so few deliveries that a query can read them all.
  if (leadId !== undefined) return findMany(core, { ...filter, status: { $in: statuses } }, limit, 'by_lead')
  const index = subscriptionId === undefined ? 'by_workspace_status' : 'by_subscription_status'
  const found = new Map<string, Delivery>()
  for (const status of deliveryStatuses.filter((each) => statuses.includes(each)))
    for (const delivery of await findMany(core, { ...filter, status }, limit, index))
      found.set(delivery.deliveryId, delivery)
  const newestFirst = [...found.values()].sort(
    (a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.deliveryId < b.deliveryId ? 1 : -1),
  )
  return newestFirst.slice(0, limit)
}

async function findMany({ db }: Core, filter: Filter<DeliveryDocument>, limit: number, hint: string) {
  const newest = { ...withoutBody, sort: { createdAt: -1, _id: -1 }, limit, batchSize: limit + 1, hint } as const
  return (await db.deliveries.find(filter, newest).toArray()).map(toDelivery)
}

async function findDelivery({ db }: Core, filter: Filter<DeliveryDocument>) {
  const found = await db.deliveries.findOne(filter, withoutBody)
  return found ? toDelivery(found) : undefined
}

type Operation = ReturnType<typeof operationOf>

/** The key is unique while its delivery exists. */
const operationOf = (
  workspaceId: string,
  route: 'create' | 'retry' | 'test',
  idempotencyKey: string,
  input: object,
) => ({
  key: `${workspaceId} ${route} ${idempotencyKey}`,
  inputHash: hashInput(input),
})

export type AttemptView = ReturnType<typeof viewAttempt>

export const viewAttempts = (delivery: Delivery) => delivery.attempts.map((_, index) => viewAttempt(delivery, index))

/**
 * Returns an attempt in the form of the API (contract, section 5). The latest one has the status of its
 * delivery. An earlier one has the status with which it ended.
 */
function viewAttempt(delivery: Delivery, index: number) {
  const { deliveryId, leadId, eventType, subscriptionId, attempts, dueAt } = delivery
  const { outcome, ...facts } = attempts[index]!
  const isLatest = index === attempts.length - 1
  const status = isLatest ? delivery.status : (outcome?.status ?? delivery.status)
  const nextRetryAt = isLatest && status === 'retry_scheduled' ? dueAt : undefined
  const of = { deliveryId, leadId, eventType, subscriptionId }
  return { ...of, ...facts, ...outcome, attemptNumber: index + 1, status, nextRetryAt }
}
