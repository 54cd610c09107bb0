import { randomUUID } from 'node:crypto'
import type { AnyBulkWriteOperation } from 'mongodb'
import { type DeliveryEventType, deliveryEvents } from '../../contract/event-kinds.ts'
import { type Core, dateOf } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { createLeases, type Leased, msUntil, whileHeld } from '../mongodb/leases.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { isRecorded, recording, unlessRecorded } from '../mongodb/recorded-operations.ts'
import { field, issueIf, oneOf, validate } from '../rules.ts'
import { maxAttempts } from './deliveries.ts'
import { type DeliveryDocument, newAttempt } from './model.ts'
import { announceDue, queueAgain } from './queue.ts'
import {
  type DeliveryRecovery,
  type LeadSubscriptionDocument,
  type RecoverableStatus,
  type RecoveryRange,
  recoverableStatuses,
} from './subscription-model.ts'
import { audited, findSubscription, type Requester } from './subscriptions.ts'

/** By default, `until` is now, and all types and statuses that can be recovered are selected. */
type RecoveryRequest = { subscriptionId: string; since: Date } & Partial<RecoveryRange>

const allTypes = Object.keys(deliveryEvents) as DeliveryEventType[]
const previewMax = 10_000
const stepMax = 200
const everyMs = 10
/** Deliveries are scheduled this many milliseconds before they are due, at most. */
const aheadMs = 10_000
/** Another core may repeat a step after this time. */
const leaseMs = 30_000
const hint = 'by_subscription_status'
const ofEnabled = { status: 'enabled', ...notDeleted } as const

/** Deliveries that are created after the request are never part of its range. */
function rangeOf({ now }: Core, { since, until, statuses, eventTypes }: RecoveryRequest): RecoveryRange {
  const end = new Date(Math.min(until?.getTime() ?? now(), now()))
  validate(
    issueIf(since >= end, '/until', 'minimum'),
    ...(eventTypes ?? []).map((type, index) => field(`/eventTypes/${index}`, type, oneOf(...allTypes))),
  )
  return { since, until: end, statuses: statuses ?? [...recoverableStatuses], eventTypes }
}

const inRange = (subscriptionId: string, { since, until, eventTypes }: RecoveryRange, status: RecoverableStatus) => ({
  subscriptionId,
  status,
  ...(eventTypes && { eventType: { $in: eventTypes } }),
  createdAt: { $gte: since, $lt: until },
  body: { $exists: true },
})

/** Counts deliveries to recover, up to `previewMax`. Errors: `SubscriptionNotFound`, `ValidationFailed`. */
export async function previewRecovery(core: Core, request: RecoveryRequest, by: Requester) {
  const { subscriptionId } = request
  await findSubscription(core, subscriptionId, by)
  const range = rangeOf(core, request)
  let counted = 0
  for (const status of range.statuses) {
    if (counted >= previewMax) break
    const found = inRange(subscriptionId, range, status)
    counted += await core.db.deliveries.countDocuments(found, { hint, limit: previewMax - counted })
  }
  return counted
}

/**
 * Begins to schedule deliveries of a subscription again, with their ids and bodies. A job continues it on
 * any core, and waits while the subscription is disabled. Errors: `SubscriptionNotFound`,
 * `SubscriptionDisabled`, `ValidationFailed`, `OperationInProgress` during another recovery of the
 * subscription.
 */
export async function beginRecovery(
  core: Core,
  request: RecoveryRequest,
  by: Requester,
  operation: string = randomUUID(),
) {
  const { leadSubscriptions } = core.db
  const { subscriptionId } = request
  const { status } = await findSubscription(core, subscriptionId, by)
  const range = rangeOf(core, request)
  if (status === 'disabled') throw new ServiceError('SubscriptionDisabled')
  const at = dateOf(core)
  const recovery: DeliveryRecovery = {
    ...range,
    recoveryId: `rec_${randomUUID()}`,
    requestedAt: at,
    remaining: range.statuses,
    nextDueAt: at,
    recovered: 0,
    nextStepAt: at,
    fencingToken: 0,
  }
  const entry = { at, actor: by.subject, action: 'recovery_started' as const }
  const { modifiedCount } = await leadSubscriptions.updateOne(
    { _id: subscriptionId, ...ofEnabled, 'recovery.nextStepAt': { $exists: false }, ...unlessRecorded(operation) },
    { $set: { recovery }, $push: { ...audited(entry), ...recording(operation) } },
  )
  if (modifiedCount === 0 && !(await isRecorded(leadSubscriptions, subscriptionId, operation)))
    throw new ServiceError('OperationInProgress', { retryAfter: 5 })
  core.bus.emit('due', 'recover deliveries')
}

export const recoveryLeasesOf = ({ db }: Core) =>
  createLeases(db.leadSubscriptions, { until: 'recovery.nextStepAt', token: 'recovery.fencingToken' })

/** Returns the time in milliseconds until the next step is due. */
export async function proceedRecoveries(core: Core) {
  for (;;) {
    const times = { now: dateOf(core), until: dateOf(core, leaseMs) }
    const leased = await recoveryLeasesOf(core).take(times, ofEnabled)
    if (!leased) return msUntil(await recoveryLeasesOf(core).nextAt(ofEnabled), core.now)
    await whileHeld(stepRecovery(core, leased))
  }
}

/** Schedules the next deliveries, or stores the end of the recovery. Throws `LeaseLost`. */
export async function stepRecovery(core: Core, { lease, document }: Leased<LeadSubscriptionDocument>) {
  const { write } = recoveryLeasesOf(core)
  const recovery = document.recovery!
  const { recoveryId, remaining } = recovery
  const [status, ...others] = remaining
  const at = dateOf(core)
  if (!status) {
    const first = operationKey(recoveryId, '')
    const scheduled = { 'operations.key': { $gte: first, $lt: `${first}~` } }
    const recovered = await core.db.deliveries.countDocuments(scheduled)
    await write(lease, {
      $set: { 'recovery.recovered': recovered, 'recovery.finishedAt': at },
      $unset: { 'recovery.nextStepAt': '', 'recovery.after': '' },
    })
    return
  }
  const found = await findNext(core, document._id, recovery, status)
  const dueAt = new Date(Math.max(at.getTime(), recovery.nextDueAt.getTime()))
  const recovered = await schedule(core, found, status, { recoveryId, at, dueAt })
  const nextDueAt = new Date(dueAt.getTime() + recovered * everyMs)
  const last = found.length < stepMax ? undefined : found.at(-1)
  await write(lease, {
    $set: {
      'recovery.nextDueAt': nextDueAt,
      'recovery.nextStepAt': new Date(Math.max(at.getTime(), nextDueAt.getTime() - aheadMs)),
      'recovery.remaining': last ? remaining : others,
      'recovery.after': last && { createdAt: last.createdAt, id: last._id },
    },
    // The next step begins with the oldest delivery of the next status.
    $unset: last ? undefined : { 'recovery.after': '' },
    $inc: { 'recovery.recovered': recovered },
  })
  if (recovered > 0) announceDue(core)
}

function findNext({ db }: Core, subscriptionId: string, recovery: DeliveryRecovery, status: RecoverableStatus) {
  const { after } = recovery
  const left = after && {
    createdAt: { $gte: after.createdAt, $lt: recovery.until },
    $or: [{ createdAt: { $gt: after.createdAt } }, { _id: { $gt: after.id } }],
  }
  const oldest = {
    projection: { createdAt: 1, attempts: 1 },
    sort: { createdAt: 1, _id: 1 },
    limit: stepMax,
    hint,
  } as const
  return db.deliveries.find({ ...inRange(subscriptionId, recovery, status), ...left }, oldest).toArray()
}

/** Schedules each delivery once per recovery. Can be repeated. Returns the number of scheduled ones. */
async function schedule(
  { db }: Core,
  found: Pick<DeliveryDocument, '_id' | 'attempts'>[],
  status: RecoverableStatus,
  { recoveryId, at, dueAt }: { recoveryId: string; at: Date; dueAt: Date },
) {
  if (found.length === 0) return 0
  const writes = found.map(({ _id, attempts }, position): AnyBulkWriteOperation<DeliveryDocument> => {
    const key = operationKey(recoveryId, _id)
    const filter = { _id, status, body: { $exists: true }, 'operations.key': { $ne: key } }
    // The attempt of a paused delivery already waits, so none is added.
    const attempt = status === 'held' ? undefined : newAttempt(at, { manual: true })
    const hasRoom = attempt && { [`attempts.${maxAttempts - 1}`]: { $exists: false } }
    const operation = { key, inputHash: '', attemptId: (attempt ?? attempts.at(-1)!).attemptId }
    const again = { at, dueAt: new Date(dueAt.getTime() + position * everyMs), attempt, operation }
    return { updateOne: { filter: { ...filter, ...hasRoom }, update: queueAgain(again) } }
  })
  return (await db.deliveries.bulkWrite(writes, { ordered: false })).modifiedCount
}

const operationKey = (recoveryId: string, deliveryId: string) => `${recoveryId} ${deliveryId}`
