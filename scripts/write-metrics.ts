// Writes the tables of docs/observability.md from the declarations of the metrics: `npm run docs:metrics`.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCoreMetrics } from '../core/metrics.ts'
import { createDeliveryMetrics } from '../delivery/metrics.ts'
import { createGatewayMetrics } from '../gateway/metrics.ts'
import { declarationsOf, type MetricDeclaration } from '../observability/metrics.ts'

const path = join(import.meta.dirname, '../docs/observability.md')

/** Every metric of the three parts. */
export function allMetrics(): MetricDeclaration[] {
  return [createGatewayMetrics(), createCoreMetrics(), createDeliveryMetrics()].flatMap(({ registry }) =>
    declarationsOf(registry),
  )
}

const row = ({ name, type, labelNames, help }: MetricDeclaration) =>
  `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(', ')} | ${help} |`

/** A document with the table between its two marks as the declarations have it. */
export function withMetrics(document: string): string {
  const [before, after] = [document.indexOf('<!-- metrics -->'), document.indexOf('<!-- /metrics -->')]
  if (before < 0 || after < before) throw new Error('the marks of the table of metrics are missing')
  const table = ['| Metric | Kind | Labels | What it says |', '|---|---|---|---|', ...allMetrics().map(row)].join('\n')
  return `${document.slice(0, before)}<!-- metrics -->\n\n${table}\n\n${document.slice(after)}`
}

if (import.meta.main) writeFileSync(path, withMetrics(readFileSync(path, 'utf8')))
