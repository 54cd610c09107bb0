import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Logger } from 'pino'

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
