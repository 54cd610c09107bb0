import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { AttemptOutcome, Delivery, DeliveryStatus } from '../delivery-stores/model.ts'
import { ServiceError } from '../errors.ts'

/** An attempt in the form that the API returns (contract, section 5). */
export interface AttemptView extends Omit<AttemptOutcome, 'responseClass' | 'status' | 'claimId'> {
  attemptId: string
  deliveryId: string
  leadId?: string
  eventType?: Delivery['eventType']
  subscriptionId: string
  attemptNumber: number
  status: DeliveryStatus
  responseClass?: AttemptOutcome['responseClass']
  nextRetryAt?: Date
  correlationId: string
  manual: boolean
  createdAt: Date
  updatedAt: Date
}

export const viewAttempts = (delivery: Delivery): AttemptView[] =>
  delivery.attempts.map((_, index) => viewAttempt(delivery, index))

/**
 * Returns the attempt at `index` in the form of the API. The latest attempt has the status of its
 * delivery. Each earlier attempt has the status with which it ended.
 */
export function viewAttempt(delivery: Delivery, index: number): AttemptView {
  const { deliveryId, leadId, eventType, subscriptionId, attempts, dueAt } = delivery
  const attempt = attempts[index]
  if (!attempt) throw new ServiceError(ErrorCode.INTERNAL_ERROR)
  const { attemptId, correlationId, manual, createdAt, updatedAt, outcome } = attempt
  const isLatest = index === attempts.length - 1
  const { claimId: _, status: ended = delivery.status, ...rest } = outcome ?? {}
  const status = isLatest ? delivery.status : ended
  return {
    attemptId,
    deliveryId,
    leadId,
    eventType,
    subscriptionId,
    attemptNumber: index + 1,
    ...rest,
    status,
    nextRetryAt: isLatest && status === 'retry_scheduled' ? dueAt : undefined,
    correlationId,
    manual,
    createdAt,
    updatedAt,
  }
}
