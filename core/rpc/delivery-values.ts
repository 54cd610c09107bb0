import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
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
import { type AttemptView, viewAttempts } from '../deliveries/deliveries.ts'
import type { AttemptResult } from '../deliveries/delivery-results.ts'
import type {
  AttemptFacts,
  AttemptPhase as Phase,
  FailureReason as Reason,
  DeliveryStatus as Status,
} from '../deliveries/delivery-states.ts'
import type { Delivery } from '../deliveries/delivery-store.ts'
import type { ClaimedDelivery } from '../deliveries/ready-requests.ts'

/** An enum value by its public name, which is the value's name in lower case. */
function enumValue<T extends number>(names: Record<string, string | number>, name: string): T {
  return names[name.toUpperCase()] as T
}

function nameOf<T extends string>(names: Record<number, string>, value: number): T | undefined {
  return value === 0 ? undefined : (names[value]?.toLowerCase() as T | undefined)
}

/** The public name of a status; undefined for an unknown one. */
export const statusName = (status: DeliveryStatus) => nameOf<Status>(DeliveryStatus, status)

export function toAttempt(attempt: AttemptView): MessageInitShape<typeof DeliveryAttemptSchema> {
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

export function toDelivery(delivery: Delivery): MessageInitShape<typeof DeliverySchema> {
  const { deliveryId, leadId, subscriptionId, status, createdAt, updatedAt } = delivery
  const latest = viewAttempts(delivery).at(-1)
  return {
    deliveryId,
    leadId,
    subscriptionId,
    status: enumValue(DeliveryStatus, status),
    latestAttempt: latest && toAttempt(latest),
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
  }
}

export function toClaimed(
  delivery: ClaimedDelivery,
  { deadlineMs, leaseMs }: { deadlineMs: number; leaseMs: number },
): MessageInitShape<typeof ClaimedDeliverySchema> {
  return { ...delivery, deadlineMs, leaseMs }
}

/** Undefined if the result has no outcome. */
export function fromResult({
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
  return facts && { deliveryId, attemptId, claimId, durationMs, facts, ...(claimed && { claimed }) }
}

function fromOutcome(outcome: AttemptResultMessage['outcome']): AttemptFacts | 'released' | undefined {
  switch (outcome.case) {
    case 'released':
      return 'released'
    case 'response': {
      const { status, retryAfterMs } = outcome.value
      return { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs: Number(retryAfterMs) }) }
    }
    case 'failure': {
      const reason = nameOf<Reason>(FailureReason, outcome.value.reason)
      const phase = nameOf<Phase>(AttemptPhase, outcome.value.phase)
      return reason && { reason, ...(phase && { phase }) }
    }
    default:
      return undefined
  }
}
