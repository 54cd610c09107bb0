import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { allMetrics, metricsDocument } from '../../dev/make/metrics.ts'
import { declarationsOf, type MetricDeclaration } from '../../platform/observability/metrics.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
const metrics = allMetrics()

function ofProcess(): MetricDeclaration[] {
  const register = new Registry()
  collectDefaultMetrics({ register })
  const declared = declarationsOf(register)
  register.clear()
  return declared
}

/** Names of all time series that Prometheus can scrape. */
const known = new Set([
  'up',
  ...[...metrics, ...ofProcess()].flatMap(({ name, type }) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
])

/** Returns the names of the time series in a PromQL expression. */
function seriesOf(expression: string): string[] {
  const bare = expression.replace(/"[^"]*"/g, '""').replace(/\bby \([^)]*\)/g, '')
  return [...bare.matchAll(/\b(?:service|process|nodejs)_\w+|\bup\b/g)].map(([name]) => name)
}

interface Panel {
  title: string
  targets?: { expr: string }[]
}

const panels: Panel[] = JSON.parse(read('deploy/grafana/service.json')).panels
const charts = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const))
const { groups } = parse(read('deploy/prometheus/alerts.yaml')) as {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[]
}
const rules = groups.flatMap((group) => group.rules.map(({ alert, expr }) => [alert, expr] as const))

it('docs/metrics.md is up to date', () => {
  expect(read('docs/metrics.md')).toBe(metricsDocument())
})

it('the metrics follow the Prometheus naming conventions with the process as prefix', () => {
  expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
  for (const { name, type } of metrics) {
    expect(name).toMatch(/^service_(gateway|core|delivery|build|log|token|tls)_[a-z_]+$/)
    if (type === 'counter') expect(name).toMatch(/_total$/)
    else expect(name).not.toMatch(/_total$/)
    if (/duration|lag|age/.test(name) && type !== 'counter') expect(name).toMatch(/_seconds$/)
  }
})

describe('the monitoring files', () => {
  it.each([...charts, ...rules])(
    'the monitoring files use only existing metrics in the panel or alert “%s”: %s',
    (_title, expression) => {
      const named = seriesOf(expression)
      expect(named).not.toEqual([])
      expect(named.filter((name) => !known.has(name))).toEqual([])
    },
  )

  it('the monitoring files use every metric in a panel or an alert', () => {
    const shown = new Set([...charts, ...rules].flatMap(([, expression]) => seriesOf(expression)))
    const names = metrics.filter(({ name }) => ![name, `${name}_bucket`, `${name}_sum`].some((each) => shown.has(each)))
    expect(names.map(({ name }) => name)).toEqual([])
  })

  it('the Prometheus example loads the alerts and scrapes each process', () => {
    const { rule_files, scrape_configs } = parse(read('deploy/prometheus/prometheus.yml'))
    expect(rule_files).toEqual(['alerts.yaml'])
    const jobs = scrape_configs.map(({ job_name }: { job_name: string }) => job_name)
    expect(jobs).toEqual(['service-gateway', 'service-core', 'service-delivery'])
  })
})
