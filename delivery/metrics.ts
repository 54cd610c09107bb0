import { createMetricSet, durationBuckets } from '../platform/observability/metrics.ts'

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>

/** Everything that a delivery worker counts. No label names a destination. */
export function createDeliveryMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet()
  return {
    registry,
    attempts: counter(
      'service_delivery_attempts_total',
      'Attempts by outcome, `response`, `failure` or `released`; detail, the class of the status or the reason; and the phase that a failure came to.',
      ['outcome', 'detail', 'phase'],
    ),
    attemptDuration: histogram('service_delivery_attempt_duration_seconds', 'Time of an attempt.', durationBuckets, [
      'outcome',
    ]),
    running: gauge('service_delivery_attempts_running', 'Attempts under way; DELIVERY_CONCURRENCY at most.'),
    unreported: gauge('service_delivery_unreported', 'Results that no core has taken yet.'),
    idleConnections: gauge(
      'service_delivery_idle_connections',
      'Connections kept for the next request; DELIVERY_IDLE_CONNECTIONS at most.',
    ),
    claims: counter(
      'service_delivery_claims_total',
      'Claims asked of the cores, by result: `work`, `none`, `failed`.',
      ['result'],
    ),
    claimed: counter('service_delivery_claimed_total', 'Deliveries that the cores gave.'),
    renewals: counter(
      'service_delivery_renewals_total',
      'Claims that were to be renewed, `held`, `lost` or `failed`.',
      ['result'],
    ),
    lateResults: counter('service_delivery_late_results_total', 'Results that came after their claims were lost.'),
  }
}
