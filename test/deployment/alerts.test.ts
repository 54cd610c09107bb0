import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { someOf } from '../support/is-long.ts'

const promtool = '/usr/bin/promtool'
const isThere = existsSync(promtool)
if (!isThere) console.info('promtool is not installed; skipping the tests of the alerts')

const folder = await mkdtemp(join(tmpdir(), 'alerts-test-'))
afterAll(() => rm(folder, { recursive: true }))

const alertsFile = join(import.meta.dirname, '../../deploy/prometheus/alerts.yaml')

/** Values of time series, one per minute, in the notation of promtool. */
type Series = Record<string, string>

interface Case {
  /** Series with which the alert fires after `minutes`. */
  firing: Series
  /** Series with which the alert does not fire, although their values are close to its limit. */
  quiet: Series
  minutes: number
  /** Labels of the alert besides its severity. */
  labels?: Record<string, string>
}

const up = (job: string) => `up{job="service-${job}",instance="${job}-1"}`
const allUp = { [up('core')]: '1x30', [up('gateway')]: '1x30', [up('delivery')]: '1x30' }
const answered = (status: string) => `service_gateway_requests_total{status="${status}"}`
const sends = (le: string) =>
  `service_gateway_request_duration_seconds_bucket{method="POST",route="/api/integrations/v1/widget/messages",le="${le}"}`
const lag = (le: string) => `service_core_wakeup_lag_seconds_bucket{le="${le}"}`
const links = 'service_gateway_core_links_up{instance="gateway-1"}'
const deadLetters = 'service_core_attempts_total{status="dead_lettered"}'
const other = (job: string) => `up{job="service-${job}",instance="${job}-2"}`
const databaseUp = 'service_core_database_up{instance="core-1"}'
const databasePing = 'service_core_database_ping_seconds{instance="core-1"}'
const ofPart = (name: string) => `${name}{part="gateway",instance="gateway-1"}`
const partLabels = { part: 'gateway', instance: 'gateway-1' }
/** Two weeks in seconds. Times in these tests begin at 0. */
const twoWeeks = 1_209_600
const ofTask = (name: string) => `${name}{task="sweep",instance="core-1"}`
const disabled = 'service_core_disabled_subscriptions{reason="gone",instance="core-1"}'
const disk = (state: string) => `service_core_database_disk_bytes{state="${state}",instance="core-1"}`
const collection = 'service_core_collection_bytes{collection="events",instance="core-1"}'
const unreported = 'service_delivery_unreported{instance="delivery-1"}'
const eventLoop = 'nodejs_eventloop_lag_p99_seconds{job="service-core",instance="core-1"}'

const startedAt = 'process_start_time_seconds{job="service-core",instance="core-1"}'

const droppedLines = 'service_log_lines_dropped_total{instance="core-1"}'

const cases: Record<string, Case> = {
  ServicePartDown: {
    firing: { ...allUp, [up('core')]: '1x5 0x10' },
    quiet: { ...allUp, [up('core')]: '1x9 0 1x10' },
    minutes: 11,
    labels: { job: 'service-core', instance: 'core-1' },
  },
  ServicePartMissing: {
    firing: { [up('core')]: '1x30', [up('gateway')]: '1x30' },
    quiet: allUp,
    minutes: 5,
    labels: { job: 'service-delivery' },
  },
  ServiceFailures: {
    firing: { [answered('2xx')]: '0+980x30', [answered('5xx')]: '0+20x30' },
    quiet: { [answered('2xx')]: '0+995x30', [answered('5xx')]: '0+5x30' },
    minutes: 12,
  },
  ServiceSendsSlow: {
    firing: { [sends('0.5')]: '0+980x30', [sends('1')]: '0+1000x30', [sends('+Inf')]: '0+1000x30' },
    quiet: { [sends('0.5')]: '0+995x30', [sends('1')]: '0+1000x30', [sends('+Inf')]: '0+1000x30' },
    minutes: 20,
  },
  ServiceSendQueueGrows: {
    firing: { service_core_log_queue_length: '10001x10' },
    quiet: { service_core_log_queue_length: '10000x10', service_gateway_send_queue_length: '5000x10' },
    minutes: 5,
  },
  ServiceGatewayWithoutCore: {
    firing: { [links]: '2 0x10' },
    quiet: { [links]: '2 1x10' },
    minutes: 5,
    labels: { instance: 'gateway-1' },
  },
  // The second core ends, and service discovery forgets it.
  ServiceCoreLost: {
    firing: { [up('core')]: '1x30', [other('core')]: '1x5 _x30', [links]: '2x5 1x30' },
    quiet: { [up('core')]: '1x30', [other('core')]: '1x5 _x30', [links]: '2x30' },
    minutes: 8,
    labels: { instance: 'gateway-1' },
  },
  ServiceWakeupsLate: {
    firing: { [lag('1')]: '0+980x30', [lag('2')]: '0+1000x30', [lag('+Inf')]: '0+1000x30' },
    quiet: { [lag('1')]: '0+995x30', [lag('2')]: '0+1000x30', [lag('+Inf')]: '0+1000x30' },
    minutes: 12,
  },
  ServiceWakeupsMissed: {
    firing: { service_core_missed_wakeups_total: '0+90x40' },
    quiet: { service_core_missed_wakeups_total: '0+30x40' },
    minutes: 25,
  },
  ServiceDatabaseDown: {
    firing: { [databaseUp]: '1x5 0x10' },
    quiet: { [databaseUp]: '1x5 0 1x10' },
    minutes: 7,
    labels: { instance: 'core-1' },
  },
  ServiceDatabaseSlow: {
    firing: { [databasePing]: '0.6x20', [databaseUp]: '1x20' },
    quiet: { [databasePing]: '0.6x3 0.4 0.6x20', [databaseUp]: '1x5 0x20' },
    minutes: 8,
    labels: { instance: 'core-1' },
  },
  ServiceDatabaseDiskFull: {
    firing: { [disk('all')]: '100x30', [disk('used')]: '86x30' },
    quiet: { [disk('all')]: '100x30', [disk('used')]: '84x30' },
    minutes: 15,
  },
  // The collections grow by 1 an hour. 100 or 200 are free.
  ServiceDatabaseDiskFills: {
    firing: { [disk('all')]: '300x1800', [disk('used')]: '200x1800', [collection]: '0+0.0166667x1800' },
    quiet: { [disk('all')]: '400x1800', [disk('used')]: '200x1800', [collection]: '0+0.0166667x1800' },
    minutes: 1600,
  },
  ServiceDatabaseFailures: {
    firing: { service_core_database_failures_total: '0+90x30' },
    quiet: { service_core_database_failures_total: '0+30x30' },
    minutes: 12,
  },
  ServiceDeliveriesLate: {
    firing: { service_core_oldest_due_age_seconds: '61x20' },
    quiet: { service_core_oldest_due_age_seconds: '59x20' },
    minutes: 10,
  },
  ServiceLeasesExpire: {
    firing: { service_core_lease_expiries_total: '0x5 30x30' },
    quiet: { service_core_lease_expiries_total: '0x5 10x30' },
    minutes: 8,
  },
  // The counter begins at 0, so its first increase counts.
  ServiceDeadLetters: {
    firing: { [deadLetters]: '0x5 1x30' },
    quiet: { [deadLetters]: '1x30' },
    minutes: 10,
  },
  // It fires as long as the subscription is disabled, and ends when it is enabled.
  ServiceSubscriptionDisabled: {
    firing: { [disabled]: '1x300' },
    quiet: { [disabled]: '1x200 0x100' },
    minutes: 290,
    labels: { reason: 'gone' },
  },
  ServiceDestinationFails: {
    firing: { service_core_failing_destination_seconds: '0+60x100' },
    quiet: { service_core_failing_destination_seconds: '0+60x58 0x100' },
    minutes: 70,
  },
  ServiceResultsUnreported: {
    firing: { [unreported]: '501x10' },
    quiet: { [unreported]: '500x10' },
    minutes: 5,
    labels: { instance: 'delivery-1' },
  },
  ServiceEventLoopSlow: {
    firing: { [eventLoop]: '0.3x20' },
    quiet: { [eventLoop]: '0.3x7 0.1 0.3x20' },
    minutes: 10,
    labels: { job: 'service-core', instance: 'core-1' },
  },
  ServiceTokenExpires: {
    firing: { [ofPart('service_token_expires_timestamp_seconds')]: `${twoWeeks + 300}x20` },
    quiet: { [ofPart('service_token_expires_timestamp_seconds')]: `${twoWeeks + 900}x20` },
    minutes: 10,
    labels: partLabels,
  },
  ServiceCertificateExpires: {
    firing: { [ofPart('service_tls_expires_timestamp_seconds')]: `${twoWeeks + 300}x20` },
    quiet: { [ofPart('service_tls_expires_timestamp_seconds')]: `${twoWeeks + 900}x20` },
    minutes: 10,
    labels: partLabels,
  },
  ServiceCertificateBroken: {
    firing: { [ofPart('service_tls_stale')]: '0x5 1x20' },
    quiet: { [ofPart('service_tls_stale')]: '0x5 1 0x20' },
    minutes: 10,
    labels: partLabels,
  },
  ServiceClockOff: {
    firing: { 'service_core_clock_offset_seconds{instance="core-1"}': '-3x20' },
    quiet: { 'service_core_clock_offset_seconds{instance="core-1"}': '2x20' },
    minutes: 5,
    labels: { instance: 'core-1' },
  },
  ServiceJobStuck: {
    firing: {
      [ofTask('service_core_job_last_success_seconds')]: '0+60x5 300x30',
      [ofTask('service_core_job_period_seconds')]: '60x40',
    },
    quiet: {
      [ofTask('service_core_job_last_success_seconds')]: '0+60x40',
      [ofTask('service_core_job_period_seconds')]: '60x40',
    },
    minutes: 15,
    labels: { task: 'sweep', instance: 'core-1' },
  },
  ServiceFollowerBehind: {
    firing: { 'service_core_follower_lag_seconds{instance="core-1",follower="feed"}': '0x2 45x20' },
    quiet: { 'service_core_follower_lag_seconds{instance="core-1",follower="feed"}': '0x2 45x3 20x20' },
    minutes: 15,
    labels: { follower: 'feed', instance: 'core-1' },
  },
  ServicePartRestarts: {
    firing: { [startedAt]: '0 0 120 180 240 240x15' },
    quiet: { [startedAt]: '0 0 120 180 180x15' },
    minutes: 10,
    labels: { job: 'service-core', instance: 'core-1' },
  },
  ServiceLogLinesDropped: {
    firing: { [droppedLines]: '0+5x20' },
    quiet: { [droppedLines]: '7x20' },
    minutes: 10,
    labels: { instance: 'core-1' },
  },
  ServiceVersionsDiffer: {
    firing: { 'service_build_info{version="1.0.0"}': '1x200', 'service_build_info{version="1.1.0"}': '1x200' },
    quiet: { 'service_build_info{version="1.0.0"}': '1x200', 'service_build_info{version="1.1.0"}': '1x60 _x140' },
    minutes: 130,
  },
}

const { groups } = parse(await readFile(alertsFile, 'utf8')) as {
  groups: {
    rules: { alert: string; labels: Record<string, string>; annotations: { summary: string; runbook_url: string } }[]
  }[]
}
const rules = groups.flatMap((group) => group.rules)

it('every alert has a test case', () => {
  expect(Object.keys(cases)).toEqual(rules.map(({ alert }) => alert))
})

it('every alert links to its paragraph of On call, and every paragraph belongs to an alert', async () => {
  const onCall = await readFile(join(import.meta.dirname, '../../docs/on-call.md'), 'utf8')
  const paragraphs = [...onCall.matchAll(/^## (\w+)\n\n\S/gm)].map(([, alert = '']) => alert)
  expect(paragraphs).toEqual(rules.map(({ alert }) => alert))
  for (const { alert, annotations } of rules)
    expect(annotations.runbook_url).toBe(`docs/on-call.md#${alert.toLowerCase()}`)
})

it.skipIf(!isThere).each(someOf(rules, 2))(
  'the alert $alert fires with values beyond its limit, and not with values close to it',
  async (rule) => {
    const { firing, quiet, minutes, labels = {} } = cases[rule.alert]!
    const summary = rule.annotations.summary.replace(
      /\{\{ \$labels\.(\w+) \}\}/g,
      (_, name: string) => labels[name] ?? '',
    )
    const expected = { exp_labels: { ...rule.labels, ...labels }, exp_annotations: { ...rule.annotations, summary } }
    const test = (series: Series, alerts: object[]) => ({
      interval: '1m',
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      alert_rule_test: [{ eval_time: `${minutes}m`, alertname: rule.alert, exp_alerts: alerts }],
    })
    const file = join(folder, `${rule.alert}.yaml`)
    await writeFile(file, stringify({ rule_files: [alertsFile], tests: [test(firing, [expected]), test(quiet, [])] }))
    const { stdout } = await promisify(execFile)(promtool, ['test', 'rules', file])
    expect(stdout).toContain('SUCCESS')
  },
)
