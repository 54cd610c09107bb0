// Writes the table of docs/metrics.md from the declarations of the metrics: `npm run make -- metrics`.
import { createCoreMetrics } from '../../core/metrics.ts'
import { createDeliveryMetrics } from '../../delivery/metrics.ts'
import { createGatewayMetrics } from '../../gateway/metrics.ts'
import { declarationsOf, type MetricDeclaration } from '../../platform/observability/metrics.ts'
import { createProcessMetrics } from '../../platform/observability/process-metrics.ts'
import { readProjectFile, withRows, writeProjectFile } from './documents.ts'

export function allMetrics(): MetricDeclaration[] {
  return [createGatewayMetrics(), createCoreMetrics(), createDeliveryMetrics(), createProcessMetrics()].flatMap(
    ({ registry }) => declarationsOf(registry),
  )
}

const row = ({ name, type, labelNames, help }: MetricDeclaration) =>
  `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(', ')} | ${help} |`

const file = 'docs/metrics.md'

export const metricsDocument = (): string =>
  withRows(readProjectFile(file), 'Metric | Kind | Labels | Meaning', allMetrics().map(row))

if (import.meta.main) writeProjectFile(file, metricsDocument())
