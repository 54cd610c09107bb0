import { createMetricSet, durationBuckets, sizeBuckets } from '../platform/observability/metrics.ts'

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>

/** The metrics of a gateway. No label contains an id, an address or another value from a client. */
export function createGatewayMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet()
  return {
    registry,
    requests: counter(
      'service_gateway_requests_total',
      'Requests of the public API, by route template and status class. An event stream counts when it begins, any other stream when it ends.',
      ['route', 'method', 'status'],
    ),
    requestDuration: histogram(
      'service_gateway_request_duration_seconds',
      'Time until the answer ends, without streams.',
      durationBuckets,
      ['route', 'method'],
    ),
    failures: counter(
      'service_gateway_failures_total',
      'Answers with an error envelope, by error code, including bans, missing consent and shed load.',
      ['code'],
    ),
    rateLimited: counter('service_gateway_rate_limited_total', 'Requests rejected by a rate limit, by limit.', [
      'limit',
    ]),
    sendBatchSize: histogram('service_gateway_send_batch_size', 'Messages in one call to a core.', sizeBuckets),
    sendQueueLength: gauge(
      'service_gateway_send_queue_length',
      'Messages that wait for a call to a core; at most SEND_QUEUE_MAX.',
    ),
    streamsOpen: gauge('service_gateway_streams_open', 'Open event streams.'),
    streamEnds: counter(
      'service_gateway_stream_ends_total',
      'Ended streams, by reason: the event or public error code that ended it, or `client`, `age`, `replaced`, `slow`, `shutdown`, `core`.',
      ['reason'],
    ),
    streamEvents: counter(
      'service_gateway_stream_events_total',
      'Events written to streams; an event counts once per stream.',
    ),
    linksUp: gauge('service_gateway_core_links_up', 'Cores that this gateway receives events from.'),
  }
}
