import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  AttemptPhase,
  type AttemptResult as AttemptResultMessage,
  type ClaimedDeliverySchema,
  FailureReason,
} from '#proto/lead/v1/delivery_pb.js'
import type { CoreConfig } from '../../config.ts'
import type { AttemptFacts } from '../../deliveries/model.ts'
import type { AttemptResult } from '../../deliveries/results.ts'
import type { ClaimedDelivery } from '../../deliveries/webhook-requests.ts'
import { nameOf } from '../proto-values.ts'

export function toClaimed(
  delivery: ClaimedDelivery,
  config: Pick<CoreConfig, 'DELIVERY_ATTEMPT_DEADLINE_MS' | 'DELIVERY_LEASE_MS'>,
): MessageInitShape<typeof ClaimedDeliverySchema> {
  return { ...delivery, deadlineMs: config.DELIVERY_ATTEMPT_DEADLINE_MS, leaseMs: config.DELIVERY_LEASE_MS }
}

/** Converts the result of an attempt. Returns undefined if the message has no outcome. */
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
  return facts && { deliveryId, attemptId, claimId, durationMs, facts, claimed }
}

function fromOutcome(outcome: AttemptResultMessage['outcome']): AttemptFacts | 'released' | undefined {
  switch (outcome.case) {
    case 'released':
      return 'released'
    case 'response': {
      const { status, retryAfterMs, text } = outcome.value
      const answer = { status, retryAfterMs: retryAfterMs === undefined ? undefined : Number(retryAfterMs) }
      return text === '' ? answer : { ...answer, text }
    }
    case 'failure': {
      const reason = nameOf(FailureReason, outcome.value.reason)
      const phase = nameOf(AttemptPhase, outcome.value.phase)
      return reason && { reason, phase }
    }
    default:
      return undefined
  }
}
