import { AttemptPhase, type ClaimedDelivery, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { contextOf, inSpan, type Span, SpanKind } from '../platform/observability/tracing.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { Outcome } from './sender.ts'

/** Measures and traces one attempt in the trace of its delivery, which the destination does not learn. */
export function observeAttempt(
  delivery: ClaimedDelivery,
  { attempts, attemptDuration }: DeliveryMetrics,
  send: () => Promise<Outcome>,
) {
  const parent = contextOf(delivery.traceparent)
  return inSpan('attempt', { kind: SpanKind.CLIENT, parent }, async (span) => {
    const startedAt = performance.now()
    const outcome = await send()
    attemptDuration.observe({ outcome: outcome.case }, (performance.now() - startedAt) / 1000)
    attempts.inc({ outcome: outcome.case, ...detailOf(outcome) })
    describe(span, outcome, delivery.headers['x-correlation-id'])
    return outcome
  })
}

function detailOf(outcome: Outcome) {
  if (outcome.case === 'response') return { detail: `${Math.floor(outcome.value.status / 100)}xx`, phase: '' }
  if (outcome.case === 'released') return { detail: '', phase: '' }
  const { reason, phase } = outcome.value
  return { detail: FailureReason[reason].toLowerCase(), phase: AttemptPhase[phase].toLowerCase() }
}

function describe(span: Span, outcome: Outcome, correlationId: string | undefined) {
  const { detail, phase } = detailOf(outcome)
  span.setAttributes({
    'service.attempt.outcome': outcome.case,
    ...(correlationId !== undefined && { 'service.correlation_id': correlationId }),
    ...(outcome.case === 'response' && { 'http.response.status_code': outcome.value.status }),
    ...(outcome.case === 'failure' && { 'error.type': detail, 'service.attempt.phase': phase }),
  })
}
