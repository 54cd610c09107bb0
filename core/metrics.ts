import { createMetricSet, durationBuckets, sizeBuckets } from '../platform/observability/metrics.ts'

export type CoreMetrics = ReturnType<typeof createCoreMetrics>

/** Everything that a core counts. No label bears an id, an address or anything else that a client chooses. */
export function createCoreMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet()
  return {
    registry,
    calls: counter(
      'service_core_calls_total',
      'Calls of the internal services, by method and public error code, or `ok`. A call with a stream counts at its end.',
      ['service', 'method', 'code'],
    ),
    callDuration: histogram(
      'service_core_call_duration_seconds',
      'Time of a call, the waiting of a claim included. Calls with a stream are left out.',
      durationBuckets,
      ['service', 'method'],
    ),
    sends: counter(
      'service_core_sends_total',
      'Messages sent, by author, `visitor` or `agent`, and what came of it: `accepted`, `replayed` or the public error code.',
      ['author', 'result'],
    ),
    logBatchSize: histogram('service_core_log_batch_size', 'Events in one write to the log.', sizeBuckets),
    logInsertDuration: histogram(
      'service_core_log_insert_duration_seconds',
      'Time of one durable write to the log.',
      durationBuckets,
    ),
    logConflicts: counter(
      'service_core_log_conflicts_total',
      'Events that the log refused: `sequence_taken` where another core was first, `operation_taken` for a repeat.',
      ['kind'],
    ),
    logQueueLength: gauge('service_core_log_queue_length', 'Events that wait to be written; 20,000 at most.'),
    subscriptionsOpen: gauge('service_core_subscriptions_open', 'Streams of all gateways that this core feeds.'),
    replaySize: histogram('service_core_replay_size', 'Events that a stream was sent before it was live.', [
      0,
      ...sizeBuckets,
    ]),
    streamResets: counter(
      'service_core_stream_resets_total',
      'Streams that had to begin anew, by the reason in `replay.reset.required`.',
      ['reason'],
    ),
    wakeupLag: histogram(
      'service_core_wakeup_lag_seconds',
      "Time from another core's write to its wake-up being heard here, by the two clocks.",
      durationBuckets,
    ),
    missedWakeups: counter(
      'service_core_missed_wakeups_total',
      'Conversations that were found behind by the look at the ends of their logs, and caught up.',
    ),
    claimedDeliveries: counter('service_core_claimed_deliveries_total', 'Deliveries given to workers.'),
    leaseExpiries: counter(
      'service_core_lease_expiries_total',
      'Deliveries taken over from a worker whose lease had ended.',
    ),
    claimRenewals: counter(
      'service_core_claim_renewals_total',
      'Claims that workers asked to renew, `held` or `lost`.',
      ['result'],
    ),
    attempts: counter(
      'service_core_attempts_total',
      'Results of attempts that count, by what becomes of the delivery and class of the response (contract 5).',
      ['status', 'response_class'],
    ),
    deliveriesDue: gauge('service_core_deliveries_due', 'Deliveries that wait for a worker, counted up to 1,000.'),
    oldestDueAge: gauge('service_core_oldest_due_age_seconds', 'How long the first of them has been due.'),
    databaseDuration: histogram(
      'service_core_database_command_duration_seconds',
      'Time of a command of the database as the driver sees it. `getMore` waits for wake-ups.',
      durationBuckets,
      ['command'],
    ),
    databaseFailures: counter('service_core_database_failures_total', 'Commands of the database that failed.', [
      'command',
    ]),
    databaseConnections: gauge('service_core_database_connections', 'Connections of the pool, `open` and `in_use`.', [
      'state',
    ]),
  }
}
