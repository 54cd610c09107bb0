import { createMetricSet, durationBuckets } from '../platform/observability/metrics.ts'

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>

/** The metrics of a delivery worker. No label names a destination. */
export function createDeliveryMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet()
  return {
    registry,
    attempts: counter(
      'service_delivery_attempts_total',
      'Attempts by outcome (`response`, `failure`, `released`), detail (status class or reason of the failure) and phase of the failure.',
      ['outcome', 'detail', 'phase'],
    ),
    attemptDuration: histogram(
      'service_delivery_attempt_duration_seconds',
      'Duration of an attempt.',
      durationBuckets,
      ['outcome'],
    ),
    running: gauge('service_delivery_attempts_running', 'Running attempts; at most DELIVERY_CONCURRENCY.'),
    unreported: gauge('service_delivery_unreported', 'Results that no core has accepted yet.'),
    idleConnections: gauge('service_delivery_idle_connections', 'Idle connections; at most 256.'),
    streams: gauge('service_delivery_streams', 'Open streams to cores. Without one, the worker gets no deliveries.'),
    received: counter('service_delivery_claimed_total', 'Deliveries received from the cores.'),
    renewals: counter('service_delivery_renewals_total', 'Answered lease renewals, by result: `held`, `lost`.', [
      'result',
    ]),
    lateResults: counter('service_delivery_late_results_total', 'Results that arrived after their lease was lost.'),
  }
}
