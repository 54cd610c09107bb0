import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { type DeliveryEventType, deliveryEvents } from '../../contract/event-kinds.ts'
import type { Bus } from '../bus.ts'
import type { DeliveryRecoveryStore, Recovering } from '../delivery-stores/delivery-recovery-store.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import { type RecoverableStatus, type RecoveryRange, recoverableStatuses } from '../destinations/recovery-model.ts'
import { inWorkspace, ServiceError } from '../errors.ts'
import { msUntil, whileHeld } from '../mongodb/leases.ts'
import { field, oneOf, validate } from '../rules.ts'
import { maxAttempts } from './deliveries.ts'
import type { Requester } from './lead-subscriptions.ts'

interface RecoveryRequest {
  subscriptionId: string
  since: Date
  /** End of the period, exclusive. Default: now. */
  until?: Date
  /** Default: all statuses that can be recovered. */
  statuses?: RecoverableStatus[]
  /** Default: all types. */
  eventTypes?: DeliveryEventType[]
}

/** Schedules deliveries of one subscription again. Each delivery keeps its id and body. */
export interface DeliveryRecoveries {
  /**
   * Returns how many deliveries a recovery would schedule, up to `previewMax`. Errors:
   * `SubscriptionNotFound`, `ValidationFailed`.
   */
  preview(request: RecoveryRequest, by: Requester): Promise<number>
  /**
   * Begins a recovery. A job continues it on any core, and waits while the subscription is disabled.
   * Errors: `SubscriptionNotFound`, `SubscriptionDisabled`, `ValidationFailed`, `OperationInProgress`
   * while another recovery of the subscription is running.
   */
  begin(request: RecoveryRequest, by: Requester, operation?: string): Promise<void>
  /** Runs the due steps of all recoveries. Returns the time in milliseconds until the next one is due. */
  proceed(): Promise<number | undefined>
}

const allTypes = Object.keys(deliveryEvents) as DeliveryEventType[]
export const previewMax = 10_000
/** Maximum number of deliveries that one step schedules. */
const stepMax = 200
/** Interval in milliseconds between the due times of deliveries. */
const everyMs = 10
/** Deliveries are scheduled at most this many milliseconds before they are due. */
const aheadMs = 10_000
/** Time in milliseconds after which another core may repeat a step. */
const leaseMs = 30_000

export function createDeliveryRecoveries(dependencies: {
  store: DeliveryRecoveryStore
  subscriptions: Pick<LeadSubscriptionStore, 'find'>
  /** Wakes waiting delivery workers. Called when a delivery may be due. */
  announce: () => void
  bus: Bus
  now: () => number
}): DeliveryRecoveries {
  const { store, subscriptions, announce, bus, now } = dependencies

  async function find(subscriptionId: string, { workspaceId }: Requester) {
    const [found] = await subscriptions.find([subscriptionId])
    return inWorkspace(found, workspaceId, ErrorCode.SUBSCRIPTION_NOT_FOUND)
  }

  /** Returns the range of a request. Deliveries that are created later are never part of it. */
  function rangeOf({ since, until, statuses, eventTypes }: RecoveryRequest): RecoveryRange {
    const end = new Date(Math.min(until?.getTime() ?? now(), now()))
    validate(
      since < end ? undefined : { path: '/until', rule: 'minimum' },
      ...(eventTypes ?? []).map((type, index) => field(`/eventTypes/${index}`, type, oneOf(...allTypes))),
    )
    return { since, until: end, statuses: statuses ?? [...recoverableStatuses], ...(eventTypes && { eventTypes }) }
  }

  async function step(of: Recovering) {
    const { recovery } = of
    const [status, ...others] = recovery.remaining
    if (!status) return store.finish(of, new Date(now()))
    const found = await store.next(of, status, stepMax)
    const at = new Date(now())
    const dueAt = new Date(Math.max(at.getTime(), recovery.nextDueAt.getTime()))
    const { recoveryId } = recovery
    const recovered = await store.schedule(found, status, { recoveryId, maxAttempts, at, dueAt, everyMs })
    const nextDueAt = new Date(dueAt.getTime() + recovered * everyMs)
    const nextStepAt = new Date(Math.max(at.getTime(), nextDueAt.getTime() - aheadMs))
    const last = found.at(-1)
    const place =
      found.length < stepMax || !last
        ? { remaining: others }
        : { remaining: recovery.remaining, after: { createdAt: last.createdAt, id: last._id } }
    await store.advance(of, { ...place, nextDueAt, nextStepAt }, recovered)
    if (recovered > 0) announce()
  }

  return {
    async preview(request, by) {
      await find(request.subscriptionId, by)
      return store.count(request.subscriptionId, rangeOf(request), previewMax)
    },

    async begin(request, by, operation = randomUUID()) {
      const { subscriptionId } = request
      const { status } = await find(subscriptionId, by)
      const range = rangeOf(request)
      if (status === 'disabled') throw new ServiceError(ErrorCode.SUBSCRIPTION_DISABLED)
      const at = new Date(now())
      const recovery = {
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
      if (!(await store.begin(subscriptionId, recovery, entry, operation)))
        throw new ServiceError(ErrorCode.OPERATION_IN_PROGRESS, { retryAfter: 5 })
      bus.emit('due', 'recover deliveries')
    },

    async proceed() {
      for (;;) {
        const at = now()
        const leased = await store.lease(new Date(at), new Date(at + leaseMs))
        if (!leased) return msUntil(await store.nextStepAt(), now)
        await whileHeld(step(leased))
      }
    },
  }
}
