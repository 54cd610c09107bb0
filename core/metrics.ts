import {
  atScrape,
  type Counter,
  createMetricSet,
  durationBuckets,
  sizeBuckets,
} from '../platform/observability/metrics.ts'
import texts from './metrics.json' with { type: 'json' }

export type CoreMetrics = ReturnType<typeof createCoreMetrics>

/** Label values are never addresses or values that clients choose. Only the longest queues have ids as labels. */
export function createCoreMetrics() {
  const { registry, counter, gauge, histogram } = createMetricSet(texts)
  return {
    registry,
    calls: counter('service_core_calls_total', ['service', 'method', 'code']),
    callDuration: histogram('service_core_call_duration_seconds', durationBuckets, ['service', 'method']),
    sends: counter('service_core_sends_total', ['author', 'result']),
    logBatchSize: histogram('service_core_log_batch_size', sizeBuckets),
    logInsertDuration: histogram('service_core_log_insert_duration_seconds', durationBuckets),
    logConflicts: counter('service_core_log_conflicts_total', ['kind']),
    logQueueLength: gauge('service_core_log_queue_length'),
    subscriptionsOpen: gauge('service_core_subscriptions_open'),
    replaySize: histogram('service_core_replay_size', [0, ...sizeBuckets]),
    streamResets: counter('service_core_stream_resets_total', ['reason']),
    wakeupLag: histogram('service_core_wakeup_lag_seconds', durationBuckets),
    peers: gauge('service_core_peers'),
    missedWakeups: counter('service_core_missed_wakeups_total'),
    claimedDeliveries: counter('service_core_claimed_deliveries_total'),
    leaseExpiries: counter('service_core_lease_expiries_total'),
    claimRenewals: counter('service_core_claim_renewals_total', ['result']),
    attempts: withZeros(counter('service_core_attempts_total', ['status', 'response_class']), attemptEnds),
    disabledSubscriptions: gauge('service_core_disabled_subscriptions', ['reason']),
    failingDestination: gauge('service_core_failing_destination_seconds'),
    deliveriesDue: gauge('service_core_deliveries_due'),
    deliveriesScheduled: gauge('service_core_deliveries_scheduled'),
    deliveriesHeld: gauge('service_core_deliveries_held'),
    longestQueues: gauge('service_core_longest_queues', ['workspace', 'subscription']),
    oldestDueAge: gauge('service_core_oldest_due_age_seconds'),
    peopleWaiting: gauge('service_core_people_waiting'),
    longestWait: gauge('service_core_longest_wait_seconds'),
    jobLastSuccess: gauge('service_core_job_last_success_seconds', ['task']),
    followerLag: gauge('service_core_follower_lag_seconds', ['follower']),
    jobPeriod: gauge('service_core_job_period_seconds', ['task']),
    removed: counter('service_core_removed_total', ['kind']),
    spared: counter('service_core_spared_total'),
    databaseDuration: histogram('service_core_database_command_duration_seconds', durationBuckets, ['command']),
    databaseFailures: counter('service_core_database_failures_total', ['command']),
    databaseUp: gauge('service_core_database_up'),
    databasePing: gauge('service_core_database_ping_seconds'),
    clockOffset: gauge('service_core_clock_offset_seconds'),
    collectionBytes: gauge('service_core_collection_bytes', ['collection']),
    databaseDiskBytes: gauge('service_core_database_disk_bytes', ['state']),
    backupSuccess: gauge('service_core_backup_last_success_seconds', ['kind']),
    databaseConnections: gauge('service_core_database_connections', ['state']),
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
/** Each status and response class with which an attempt can end (contract, section 5). */
const attemptEnds = [
  { status: 'accepted', response_class: 'accepted' },
  ...failedClasses.map((name) => ({ status: 'failed', response_class: name })),
  ...retriedClasses.map((name) => ({ status: 'retry_scheduled', response_class: name })),
  ...retriedClasses.map((name) => ({ status: 'dead_lettered', response_class: name })),
]

/** Sets each series to 0. Otherwise `increase()` misses the first event of a series. */
function withZeros<Labels extends string>(counter: Counter<Labels>, series: Record<Labels, string>[]) {
  for (const labels of series) counter.inc(labels, 0)
  return counter
}

export const observeLags = ({ followerLag }: Pick<CoreMetrics, 'followerLag'>, lags: Record<string, () => number>) =>
  atScrape(followerLag, () => {
    for (const [follower, lagMs] of Object.entries(lags)) followerLag.set({ follower }, lagMs() / 1000)
  })

export function observeJobs(
  { jobLastSuccess, jobPeriod }: Pick<CoreMetrics, 'jobLastSuccess' | 'jobPeriod'>,
  jobs: { name: string; everyMs: number; lastSuccessAt(): number }[],
) {
  for (const { name, everyMs } of jobs) jobPeriod.set({ task: name }, everyMs / 1000)
  atScrape(jobLastSuccess, () => {
    for (const { name, lastSuccessAt } of jobs) jobLastSuccess.set({ task: name }, lastSuccessAt() / 1000)
  })
}
