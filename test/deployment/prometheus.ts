import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { createSlots } from '../../platform/concurrency/slots.ts'
import { freePort, startProgram } from '../support/processes.ts'
import { until } from '../support/until.ts'

const program = '/usr/bin/prometheus'
export const hasPrometheus = existsSync(program)

const deployed = join(import.meta.dirname, '../../deploy/prometheus')
const scrapeSeconds = 1
/** Durations of the rules are divided by this number. */
const faster = 30
/** Shortest duration. A window of two scrapes contains two values, even if the machine is busy. */
const minSeconds = 2 * scrapeSeconds
/** Keeps alerts of rare events short, and the windows of an hour. */
const maxSeconds = 30

export interface Alert {
  labels: Record<string, string>
  state: 'pending' | 'firing'
}

export interface Rule {
  alert: string
  expr: string
  for?: string
  keep_firing_for?: string
  labels: Record<string, string>
}

/** Addresses of metrics, `127.0.0.1:…`, by job. */
export type Targets = Record<'service-core' | 'service-gateway' | 'service-delivery', string[]>

interface Sample {
  metric: Record<string, string>
  /** Time and value. */
  value: [number, string]
}

export interface Prometheus {
  /** The rules with shortened durations. */
  rules: Rule[]
  /** Replaces the addresses that service discovery finds. */
  discover(targets: Targets): Promise<void>
  alerts(): Promise<Alert[]>
  /** Returns the labels and the value of each series. */
  query(expression: string): Promise<{ metric: Record<string, string>; value: number }[]>
}

const unitSeconds = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** Shortens a duration such as `10m`. */
function shorten(duration: string): string {
  const seconds = Number.parseInt(duration, 10) * unitSeconds[duration.at(-1) as keyof typeof unitSeconds]
  return `${Math.round(Math.min(maxSeconds, Math.max(minSeconds, seconds / faster)))}s`
}

/**
 * Shortens `for` and the windows of the rule's expression, such as `[10m:30s]`. Leaves everything else
 * as it is: limits, labels and durations that an expression compares with.
 */
export const shortenRule = (rule: Rule): Rule => ({
  ...rule,
  expr: rule.expr.replaceAll(/\[[\w:]+\]/g, (window) => window.replaceAll(/\d+[smhd]/g, shorten)),
  ...(rule.for !== undefined && { for: shorten(rule.for) }),
  ...(rule.keep_firing_for !== undefined && { keep_firing_for: shorten(rule.keep_firing_for) }),
})

/**
 * Starts Prometheus with the deployed configuration and rules. Durations of the rules are shortened,
 * scrapes and evaluations follow each second, and service discovery reads a file.
 */
export async function startPrometheus(folder: string, targets: Targets): Promise<Prometheus> {
  const { groups } = parse(await readFile(join(deployed, 'alerts.yaml'), 'utf8')) as { groups: { rules: Rule[] }[] }
  const shortened = groups.map((group) => ({ ...group, rules: group.rules.map(shortenRule) }))
  await writeFile(join(folder, 'alerts.yaml'), stringify({ groups: shortened }))
  const config = parse(await readFile(join(deployed, 'prometheus.yml'), 'utf8'))
  const interval = `${scrapeSeconds}s`
  await writeFile(
    join(folder, 'prometheus.yml'),
    stringify({
      global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
      rule_files: config.rule_files,
      scrape_configs: (config.scrape_configs as { job_name: keyof Targets }[]).map(({ job_name }) => ({
        job_name,
        file_sd_configs: [{ files: [`${job_name}.json`], refresh_interval: interval }],
      })),
    }),
  )

  // Tests that run concurrently change the targets.
  const turns = createSlots({ max: 1 })
  const discover = (next: Targets) =>
    turns.run(async () => {
      for (const [job, addresses] of Object.entries(next)) {
        await writeFile(join(folder, `${job}.new`), JSON.stringify([{ targets: addresses }]))
        await rename(join(folder, `${job}.new`), join(folder, `${job}.json`))
      }
    })

  await discover(targets)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const paths = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`]
  await startProgram(program, [...paths, `--web.listen-address=127.0.0.1:${port}`], port)
  await until('Prometheus', () => fetch(`${url}/-/ready`).then(({ ok }) => ok))

  async function read<Data>(path: string): Promise<Data> {
    const answer = (await (await fetch(`${url}/api/v1/${path}`)).json()) as { data: Data }
    return answer.data
  }

  return {
    rules: shortened.flatMap(({ rules }) => rules),
    discover,
    alerts: async () => (await read<{ alerts: Alert[] }>('alerts')).alerts,
    async query(expression) {
      const { result } = await read<{ result: Sample[] }>(`query?query=${encodeURIComponent(expression)}`)
      return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }))
    },
  }
}
