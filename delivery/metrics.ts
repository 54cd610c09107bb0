import { createMetricSet, durationBuckets } from '../platform/observability/metrics.ts'
import texts from './metrics.json' with { type: 'json' }

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>

/** No label names a destination. */
export function createDeliveryMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet(texts)
  return {
    registry,
    attempts: counter('service_delivery_attempts_total', ['outcome', 'detail', 'phase']),
    attemptDuration: histogram('service_delivery_attempt_duration_seconds', durationBuckets, ['outcome']),
    running: gauge('service_delivery_attempts_running'),
    unreported: gauge('service_delivery_unreported'),
    idleConnections: gauge('service_delivery_idle_connections'),
    streams: gauge('service_delivery_streams'),
    received: counter('service_delivery_claimed_total'),
    renewals: counter('service_delivery_renewals_total', ['result']),
    lateResults: counter('service_delivery_late_results_total'),
  }
}
