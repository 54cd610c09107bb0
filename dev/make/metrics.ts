// Writes docs/metrics.md from the declarations of the metrics: `npm run make -- metrics`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCoreMetrics } from '../../core/metrics.ts'
import { createDeliveryMetrics } from '../../delivery/metrics.ts'
import { createGatewayMetrics } from '../../gateway/metrics.ts'
import { declarationsOf, type MetricDeclaration } from '../../platform/observability/metrics.ts'
import { createProcessMetrics } from '../../platform/observability/process-metrics.ts'

export function allMetrics(): MetricDeclaration[] {
  return [createGatewayMetrics(), createCoreMetrics(), createDeliveryMetrics(), createProcessMetrics()].flatMap(
    ({ registry }) => declarationsOf(registry),
  )
}

const row = ({ name, type, labelNames, help }: MetricDeclaration) =>
  `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(', ')} | ${help} |`

export function metricsDocument(): string {
  return `# Metrics

Served at \`GET /metrics\` on \`METRICS_PORT\` ([operating](operating.md#watch)), in addition to the default \`process_…\` and \`nodejs_…\` metrics.
Generated from the code by \`npm run make -- metrics\`.

| Metric | Kind | Labels | Meaning |
|---|---|---|---|
${allMetrics().map(row).join('\n')}
`
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, '../../docs/metrics.md'), metricsDocument())
