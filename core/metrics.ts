import { type Counter, createMetricSet, durationBuckets, sizeBuckets } from '../platform/observability/metrics.ts'

export type CoreMetrics = ReturnType<typeof createCoreMetrics>

/**
 * Creates the metrics of a core. Label values are never addresses or other values that clients
 * choose. Only the ten longest queues of deliveries have ids as labels.
 */
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
      'Duration of a call, including the wait of a claim. Calls with a stream are excluded.',
      durationBuckets,
      ['service', 'method'],
    ),
    sends: counter(
      'service_core_sends_total',
      'Messages sent, by author (`visitor`, `agent` or `bot`) and result: `accepted`, `replayed` or the public error code.',
      ['author', 'result'],
    ),
    logBatchSize: histogram('service_core_log_batch_size', 'Events in one write to the log.', sizeBuckets),
    logInsertDuration: histogram(
      'service_core_log_insert_duration_seconds',
      'Duration of one durable write to the log.',
      durationBuckets,
    ),
    logConflicts: counter(
      'service_core_log_conflicts_total',
      'Events that the log rejected: `sequence_taken` if another core was first, `operation_taken` for a repeat.',
      ['kind'],
    ),
    logQueueLength: gauge('service_core_log_queue_length', 'Events waiting to be written; at most 20,000.'),
    subscriptionsOpen: gauge('service_core_subscriptions_open', 'Open streams of all gateways on this core.'),
    replaySize: histogram('service_core_replay_size', 'Events replayed to a stream before it was live.', [
      0,
      ...sizeBuckets,
    ]),
    streamResets: counter(
      'service_core_stream_resets_total',
      'Streams that required a reset, by the reason in `replay.reset.required`.',
      ['reason'],
    ),
    wakeupLag: histogram(
      'service_core_wakeup_lag_seconds',
      'Time from the write of another core to the arrival of its wake-up, by the clocks of both cores.',
      durationBuckets,
    ),
    peers: gauge(
      'service_core_peers',
      'Other cores that live: this core has read a beat of theirs within the last 45 seconds.',
    ),
    missedWakeups: counter(
      'service_core_missed_wakeups_total',
      'Conversations that the periodic check found behind the end of their log.',
    ),
    claimedDeliveries: counter('service_core_claimed_deliveries_total', 'Deliveries leased to workers.'),
    leaseExpiries: counter(
      'service_core_lease_expiries_total',
      'Deliveries taken over after the lease of a worker had expired.',
    ),
    claimRenewals: counter(
      'service_core_claim_renewals_total',
      'Claims that workers renewed, by result: `held` or `lost`.',
      ['result'],
    ),
    attempts: withZeros(
      counter(
        'service_core_attempts_total',
        'Recorded results of attempts, by delivery status and response class (contract 5).',
        ['status', 'response_class'],
      ),
      attemptEnds,
    ),
    disabledSubscriptions: gauge(
      'service_core_disabled_subscriptions',
      'Lead subscriptions and hooks that are disabled because the service disabled them, by reason; counted up to 1,000.',
      ['reason'],
    ),
    failingDestination: gauge(
      'service_core_failing_destination_seconds',
      'For how long a destination has failed every attempt, also by no answer: the longest of all enabled subscriptions and hooks.',
    ),
    deliveriesDue: gauge('service_core_deliveries_due', 'Due deliveries waiting for a worker, counted up to 1,000.'),
    deliveriesScheduled: gauge(
      'service_core_deliveries_scheduled',
      'Deliveries that wait for a later attempt, such as a retry; due ones and these are counted up to 1,000.',
    ),
    deliveriesHeld: gauge(
      'service_core_deliveries_held',
      'Deliveries that wait because their subscription or hook is disabled, counted up to 1,000.',
    ),
    longestQueues: gauge(
      'service_core_longest_queues',
      'Due and scheduled deliveries of the ten destinations that have most, among those counted, by workspace and by subscription or hook.',
      ['workspace', 'subscription'],
    ),
    oldestDueAge: gauge(
      'service_core_oldest_due_age_seconds',
      'How long the oldest due delivery has waited that a worker could start: no worker is sending to its destination.',
    ),
    peopleWaiting: gauge(
      'service_core_people_waiting',
      'Conversations of the last 12 hours whose last message is of a visitor, counted up to 1,000.',
    ),
    longestWait: gauge(
      'service_core_longest_wait_seconds',
      'Longest time that one of the visitors counted has waited: since the first message after the last answer.',
    ),
    jobLastSuccess: gauge(
      'service_core_job_last_success_seconds',
      'Time since 1970 at which a periodic job last ended without a failure; before that, the start of the core.',
      ['task'],
    ),
    followerLag: gauge(
      'service_core_follower_lag_seconds',
      'How long the oldest event waits to be followed: by the `feed`, by the `fan_out` to event hooks, and by the `search`.',
      ['follower'],
    ),
    jobPeriod: gauge('service_core_job_period_seconds', 'Time between two runs of a periodic job.', ['task']),
    removed: counter(
      'service_core_removed_total',
      'Data that erasures, retention and deletions removed, by kind: `conversations`, `sessions`, `events`, `search_entries`, `leads`, `deliveries`, `held_deliveries` or `audit`.',
      ['kind'],
    ),
    spared: counter(
      'service_core_spared_total',
      'Conversations and leads that the retention hid and showed again, because they were used or the policy changed.',
    ),
    databaseDuration: histogram(
      'service_core_database_command_duration_seconds',
      'Duration of a database command in the driver. `getMore` includes the wait for wake-ups.',
      durationBuckets,
      ['command'],
    ),
    databaseFailures: counter('service_core_database_failures_total', 'Failed database commands.', ['command']),
    databaseUp: gauge(
      'service_core_database_up',
      '1 while pings of the database are answered, also slowly; 0 after one failed, or without a primary.',
    ),
    databasePing: gauge(
      'service_core_database_ping_seconds',
      'Duration of the last ping of the database, or how long the one under way has waited.',
    ),
    clockOffset: gauge(
      'service_core_clock_offset_seconds',
      'By how much the clock of this core is ahead of the database’s clock.',
    ),
    collectionBytes: gauge(
      'service_core_collection_bytes',
      'Bytes that a collection takes on the disk of the database, with its indexes.',
      ['collection'],
    ),
    databaseDiskBytes: gauge(
      'service_core_database_disk_bytes',
      'Size of the disk with the database’s files, and how much of it is `used`. Missing if the database does not tell.',
      ['state'],
    ),
    backupSuccess: gauge(
      'service_core_backup_last_success_seconds',
      'Time of the last success since 1970: `backup`, written and verified; `drill`, restored and started. Missing before the first.',
      ['kind'],
    ),
    databaseConnections: gauge(
      'service_core_database_connections',
      'Connections of the database pool, `open` and `in_use`.',
      ['state'],
    ),
  }
}

const retriedClasses = ['rate_limited', 'server_error', 'timeout', 'network_error', 'unreadable_answer']
const failedClasses = [
  'rejected_payload',
  'rejected_auth',
  'gone',
  'conflict',
  'redirected',
  'rejected',
  'destination_blocked',
  'suppressed',
  'unreadable_answer',
]
/**
 * Every combination of status and response class with which an attempt can end (contract, section
 * 5).
 */
const attemptEnds = [
  { status: 'accepted', response_class: 'accepted' },
  ...failedClasses.map((name) => ({ status: 'failed', response_class: name })),
  ...retriedClasses.map((name) => ({ status: 'retry_scheduled', response_class: name })),
  ...retriedClasses.map((name) => ({ status: 'dead_lettered', response_class: name })),
]

/** Sets all series of the counter to 0. Otherwise `increase()` misses the first event of a series. */
function withZeros<Labels extends string>(counter: Counter<Labels>, series: Record<Labels, string>[]) {
  for (const labels of series) counter.inc(labels, 0)
  return counter
}

/** Reports how far each follower is behind. */
export function observeLags({ followerLag }: Pick<CoreMetrics, 'followerLag'>, lags: Record<string, () => number>) {
  Object.assign(followerLag, {
    collect() {
      for (const [follower, lagMs] of Object.entries(lags)) followerLag.set({ follower }, lagMs() / 1000)
    },
  })
}

export function observeJobs(
  { jobLastSuccess, jobPeriod }: Pick<CoreMetrics, 'jobLastSuccess' | 'jobPeriod'>,
  jobs: { name: string; everyMs: number; lastSuccessAt(): number }[],
) {
  for (const { name, everyMs } of jobs) jobPeriod.set({ task: name }, everyMs / 1000)
  Object.assign(jobLastSuccess, {
    collect() {
      for (const { name, lastSuccessAt } of jobs) jobLastSuccess.set({ task: name }, lastSuccessAt() / 1000)
    },
  })
}
