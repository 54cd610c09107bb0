import type { Reporter, TestModule } from 'vitest/node'
import { journeys } from './journeys.ts'

/** The longest that a test of `npm test` may take on a machine where the median test takes `medianMs`. */
const limitMs = 2_000
/** Median duration of a test on two idle processors. A slower machine has a greater limit. */
const medianMs = 15
/** A run of fewer tests says too little about the machine. */
const fewestTests = 1_000

/**
 * Prints the tests of `npm test` that take more than two seconds and are not listed in `journeys.ts`. Durations are
 * compared with the median of the same run, so that a slow or busy machine changes nothing.
 */
export class SlowTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const durations = modules.flatMap((module) =>
      [...module.children.allTests('passed')].map((test) => ({
        name: `${module.relativeModuleId} > ${test.fullName}`,
        file: module.relativeModuleId,
        ms: test.diagnostic()?.duration ?? 0,
      })),
    )
    if (durations.length < fewestTests) return
    const median = durations.map(({ ms }) => ms).toSorted((a, b) => a - b)[durations.length >> 1]!
    const limit = limitMs * Math.max(1, median / medianMs)
    const slow = durations.filter(({ ms, file }) => ms > limit && !journeys.includes(file))
    if (slow.length === 0) return
    console.log(
      `\nTests that take longer than ${Math.round(limit)} ms (median ${median.toFixed(1)} ms). Make them cheaper, or`,
    )
    console.log('name them `*.long.test.ts`; journeys are listed in test/support/journeys.ts:')
    for (const { ms, name } of slow.toSorted((a, b) => b.ms - a.ms)) console.log(`  ${Math.round(ms)} ms ${name}`)
  }
}
