import { createMetricSet, durationBuckets, sizeBuckets } from '../platform/observability/metrics.ts'

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>

/** Everything that a gateway counts. No label bears an id, an address or anything else that a client chooses. */
export function createGatewayMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet()
  return {
    registry,
    requests: counter(
      'service_gateway_requests_total',
      'Requests of the public API, by route template and class of the status. An event stream counts when it has begun, any other stream at its end.',
      ['route', 'method', 'status'],
    ),
    requestDuration: histogram(
      'service_gateway_request_duration_seconds',
      'Time to the end of the answer. Streams are left out.',
      durationBuckets,
      ['route', 'method'],
    ),
    failures: counter(
      'service_gateway_failures_total',
      'Answers with the error envelope, by its code: bans, missing consent and load shed among them.',
      ['code'],
    ),
    rateLimited: counter('service_gateway_rate_limited_total', 'Requests refused, by the limit that was used up.', [
      'limit',
    ]),
    sendBatchSize: histogram('service_gateway_send_batch_size', 'Messages in one call to a core.', sizeBuckets),
    sendQueueLength: gauge(
      'service_gateway_send_queue_length',
      'Messages that wait for a call to a core; SEND_QUEUE_MAX at most.',
    ),
    streamsOpen: gauge('service_gateway_streams_open', 'Event streams that are open.'),
    streamEnds: counter(
      'service_gateway_stream_ends_total',
      'Streams that ended, by why: the event that ended it, or `client`, `age`, `replaced`, `slow`, `shutdown`, `core`.',
      ['reason'],
    ),
    streamEvents: counter('service_gateway_stream_events_total', 'Events written to streams, once for each reader.'),
    linksUp: gauge('service_gateway_core_links_up', 'Cores whose events this gateway hears.'),
  }
}
