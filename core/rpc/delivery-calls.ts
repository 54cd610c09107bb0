import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import {
  AttemptPhase,
  type AttemptResult as AttemptResultMessage,
  type ClaimedDeliverySchema,
  type DeliveryAttemptSchema,
  type DeliverySchema,
  DeliveryStatus,
  FailureReason,
  ResponseClass,
} from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { CoreContext } from '../context.ts'
import { type AttemptView, viewAttempts } from '../deliveries/deliveries.ts'
import type { AttemptResult } from '../deliveries/delivery-results.ts'
import type {
  AttemptFacts,
  Delivery,
  AttemptPhase as Phase,
  FailureReason as Reason,
  DeliveryStatus as Status,
} from '../deliveries/model.ts'
import type { ClaimedDelivery } from '../deliveries/webhook-requests.ts'
import { ServiceError } from '../errors.ts'
import { callerOf, requiredWorkspace } from './caller.ts'

type Calls = ServiceImpl<typeof LeadService>

/** Calls about deliveries for operators and other services. */
export function deliveryCalls({
  deliveries,
}: CoreContext): Pick<
  Calls,
  'createDeliveryAttempt' | 'sendTestDelivery' | 'retryDeliveryAttempt' | 'listDeliveryAttempts' | 'listDeliveries'
> {
  return {
    async createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey }, context) {
      const request = { leadId, subscriptionId, idempotencyKey }
      const { attempt, existing } = await deliveries.createAttempt(request, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async sendTestDelivery({ subscriptionId, idempotencyKey }, context) {
      const { attempt, existing } = await deliveries.sendTest({ subscriptionId, idempotencyKey }, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async retryDeliveryAttempt({ attemptId, idempotencyKey }, context) {
      const { attempt, existing } = await deliveries.retryAttempt({ attemptId, idempotencyKey }, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async listDeliveryAttempts({ leadId, deliveryId }, context) {
      if ((leadId === '') === (deliveryId === '')) throw invalid('/leadId', 'oneOf')
      const of = leadId === '' ? { deliveryId } : { leadId }
      return { attempts: (await deliveries.listAttempts(of, callerOf(context))).map(toAttempt) }
    },

    async listDeliveries(request, context) {
      const { workspaceId, subscriptionId, leadId, statuses, createdSince, createdUntil, limit, pageToken } = request
      const names = statuses.map((status) => {
        const name = statusName(status)
        if (!name) throw invalid('/statuses', 'enum')
        return name
      })
      const { deliveries: found, nextPageToken = '' } = await deliveries.list({
        workspaceId: requiredWorkspace(context, workspaceId),
        subscriptionId,
        leadId,
        statuses: names.length === 0 ? undefined : names,
        since: createdSince && timestampDate(createdSince),
        until: createdUntil && timestampDate(createdUntil),
        limit,
        pageToken: pageToken || undefined,
      })
      return { deliveries: found.map(toDelivery), nextPageToken }
    },
  }
}

/**
 * Calls for delivery workers. Workers serve all workspaces, so tokens limited to one workspace are
 * rejected.
 */
export function workerCalls({
  deliveryClaims,
  deliveryResults,
  config,
}: CoreContext): Pick<Calls, 'claimDeliveries' | 'renewClaims' | 'recordAttempts'> {
  const times = { deadlineMs: config.DELIVERY_ATTEMPT_DEADLINE_MS, leaseMs: config.DELIVERY_LEASE_MS }
  return {
    async claimDeliveries({ workerId, limit, perDestination, underWay, ahead, waitMs, onlyNew }, context) {
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const claimed = await deliveryClaims.claim({
        workerId,
        limit,
        perDestination,
        underWay: new Map(Object.entries(underWay)),
        ahead: new Map(Object.entries(ahead)),
        waitMs,
        onlyNew,
        signal: context.signal,
      })
      return { deliveries: claimed.map((delivery) => toClaimed(delivery, times)) }
    },

    async renewClaims({ claims }, context) {
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const renewed = await deliveryClaims.renew(claims)
      return { renewed: renewed.map((held) => ({ held })) }
    },

    async recordAttempts({ results }, context) {
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const read = results.map((result, index) => {
        const known = fromResult(result)
        if (!known) throw invalid(`/results/${index}`, 'oneOf')
        return known
      })
      const counted = await deliveryResults.record(read)
      return { recorded: counted.map((counts) => ({ counted: counts })) }
    },
  }
}

function invalid(path: string, rule: string): ServiceError {
  return new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path, rule }] })
}

/**
 * Returns the enum value with this public name. The public name is the name of the value in lower
 * case.
 */
function enumValue<T extends number>(names: Record<string, string | number>, name: string): T {
  return names[name.toUpperCase()] as T
}

function nameOf<T extends string>(names: Record<number, string>, value: number): T | undefined {
  return value === 0 ? undefined : (names[value]?.toLowerCase() as T | undefined)
}

/** Returns the public name of a status; undefined for an unknown status. */
const statusName = (status: DeliveryStatus) => nameOf<Status>(DeliveryStatus, status)

function toAttempt(attempt: AttemptView): MessageInitShape<typeof DeliveryAttemptSchema> {
  const { status, responseClass, failureReason, failurePhase, nextRetryAt, createdAt, updatedAt, ...rest } = attempt
  return {
    ...rest,
    status: enumValue(DeliveryStatus, status),
    responseClass: responseClass ? enumValue(ResponseClass, responseClass) : ResponseClass.UNSPECIFIED,
    failureReason: failureReason ? enumValue(FailureReason, failureReason) : FailureReason.UNSPECIFIED,
    failurePhase: failurePhase ? enumValue(AttemptPhase, failurePhase) : AttemptPhase.UNSPECIFIED,
    nextRetryAt: nextRetryAt && timestampFromDate(nextRetryAt),
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
  }
}

function toDelivery(delivery: Delivery): MessageInitShape<typeof DeliverySchema> {
  const { deliveryId, leadId, subscriptionId, status, createdAt, updatedAt, handoff } = delivery
  const latest = viewAttempts(delivery).at(-1)
  return {
    deliveryId,
    leadId,
    subscriptionId,
    status: enumValue(DeliveryStatus, status),
    latestAttempt: latest && toAttempt(latest),
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
    handoff: handoff && { ...handoff, at: timestampFromDate(handoff.at) },
  }
}

function toClaimed(
  delivery: ClaimedDelivery,
  { deadlineMs, leaseMs }: { deadlineMs: number; leaseMs: number },
): MessageInitShape<typeof ClaimedDeliverySchema> {
  return { ...delivery, deadlineMs, leaseMs }
}

/** Converts the result of an attempt. Returns undefined if the message has no outcome. */
function fromResult({
  deliveryId,
  attemptId,
  claimId,
  durationMs,
  attemptNumber,
  destination,
  outcome,
}: AttemptResultMessage): AttemptResult | undefined {
  const facts = fromOutcome(outcome)
  const claimed = attemptNumber > 0 && destination !== '' ? { attemptNumber, subscriptionId: destination } : undefined
  return facts && { deliveryId, attemptId, claimId, durationMs, facts, claimed }
}

function fromOutcome(outcome: AttemptResultMessage['outcome']): AttemptFacts | 'released' | undefined {
  switch (outcome.case) {
    case 'released':
      return 'released'
    case 'response': {
      const { status, retryAfterMs } = outcome.value
      return { status, retryAfterMs: retryAfterMs === undefined ? undefined : Number(retryAfterMs) }
    }
    case 'failure': {
      const reason = nameOf<Reason>(FailureReason, outcome.value.reason)
      const phase = nameOf<Phase>(AttemptPhase, outcome.value.phase)
      return reason && { reason, phase }
    }
    default:
      return undefined
  }
}
