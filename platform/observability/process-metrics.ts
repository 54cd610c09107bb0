import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Logger } from 'pino'
import { droppedLineCount } from './logger.ts'
import { atScrape, createMetricSet } from './metrics.ts'
import texts from './process-metrics.json' with { type: 'json' }

export const serviceVersion = (): string =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')).version

interface PartFacts {
  part: string
  /** Expiry of the service token; infinite if it does not expire. Times are in milliseconds since 1970. */
  tokenExpiresAt?: number
  tls?: { expiresAt(): number; isStale(): boolean } | undefined
}

/** Creates the metrics that every process has. With a logger, also warns when memory is nearly full. */
export function createProcessMetrics(parts: PartFacts[] = [], logger?: Logger) {
  if (logger) warnNearMemoryLimit(logger)
  const { registry, counter, gauge } = createMetricSet(texts)
  const build = gauge('service_build_info', ['part', 'version', 'node'])
  const tokenExpiry = gauge('service_token_expires_timestamp_seconds', ['part'])
  const tlsExpiry = gauge('service_tls_expires_timestamp_seconds', ['part'])
  const tlsStale = gauge('service_tls_stale', ['part'])
  const dropped = counter('service_log_lines_dropped_total')
  atScrape(dropped, () => {
    dropped.reset()
    dropped.inc(droppedLineCount())
  })
  for (const { part, tokenExpiresAt = Number.POSITIVE_INFINITY } of parts) {
    build.set({ part, version: serviceVersion(), node: process.versions.node }, 1)
    if (Number.isFinite(tokenExpiresAt)) tokenExpiry.set({ part }, tokenExpiresAt / 1000)
  }
  const withTls = parts.flatMap(({ part, tls }) => (tls ? [{ part, tls }] : []))
  atScrape(tlsExpiry, () => {
    for (const { part, tls } of withTls) tlsExpiry.set({ part }, tls.expiresAt() / 1000)
  })
  atScrape(tlsStale, () => {
    for (const { part, tls } of withTls) tlsStale.set({ part }, tls.isStale() ? 1 : 0)
  })
  return { registry }
}

const warnedShare = 0.85
const warnEveryMs = 60_000
/** The heap's limit contains three semi-spaces, of 64 MiB each by default. */
const semiSpaceMiB = Number(/--max-semi-space-size=(\d+)/.exec(process.execArgv.join(' '))?.[1] ?? 64)

/** Logs an error near the limit of the heap. At the limit, Node ends the process with status 134 and no log line. */
export function warnNearMemoryLimit(logger: Logger) {
  let warnedAt = Number.NEGATIVE_INFINITY
  new PerformanceObserver(() => {
    if (performance.now() - warnedAt < warnEveryMs) return
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
    const usedMiB = Math.round(used / 2 ** 20)
    const limitMiB = Math.round(limit / 2 ** 20) - 3 * semiSpaceMiB
    if (usedMiB < warnedShare * limitMiB) return
    warnedAt = performance.now()
    logger.error({ usedMiB, limitMiB }, 'memory is nearly full; at the limit this process ends with status 134')
  }).observe({ entryTypes: ['gc'] })
}
