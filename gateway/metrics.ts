import { createMetricSet, durationBuckets, sizeBuckets } from '../platform/observability/metrics.ts'
import texts from './metrics.json' with { type: 'json' }

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>

/** The metrics of a gateway. No label contains an id, an address or another value from a client. */
export function createGatewayMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet(texts)
  return {
    registry,
    requests: counter('service_gateway_requests_total', ['route', 'method', 'status']),
    requestDuration: histogram('service_gateway_request_duration_seconds', durationBuckets, ['route', 'method']),
    failures: counter('service_gateway_failures_total', ['code']),
    rateLimited: counter('service_gateway_rate_limited_total', ['limit']),
    sendBatchSize: histogram('service_gateway_send_batch_size', sizeBuckets),
    sendQueueLength: gauge('service_gateway_send_queue_length'),
    streamsOpen: gauge('service_gateway_streams_open'),
    streamEnds: counter('service_gateway_stream_ends_total', ['reason']),
    streamEvents: counter('service_gateway_stream_events_total'),
    linksUp: gauge('service_gateway_core_links_up'),
  }
}
