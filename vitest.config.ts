import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Names of the files that each mode runs, for example `vitest run --mode long`. */
const suffixes: Record<string, string> = {
  /** `npm test`: the regular tests. They take minutes. */
  test: '*.test.ts',
  /** `npm run test:long`: tests that kill processes, repeat runs or use large sizes. */
  long: '*.long.test.ts',
  /** Tests that take options and print results: `npm run chaos -- delivery`, `npm run verify -- fuzz`. */
  run: '*.run.ts',
}

/**
 * Folders with the slowest test files. They start first, so that no slow file runs alone at the
 * end.
 */
const longest = ['test/conformance/', 'test/browser/', 'test/end-to-end/']

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const rank = ({ moduleId }: TestSpecification) => {
      const found = longest.findIndex((folder) => moduleId.includes(`/${folder}`))
      return found < 0 ? longest.length : found
    }
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}

/** Time limit of one test in milliseconds. */
const timeouts: Record<string, number> = { test: 120_000, long: 900_000, run: 3_600_000 }

export default defineConfig(({ mode }) => ({
  test: {
    include: [
      `{core,core-client,gateway,delivery,platform,widget,console,test,dev,admin}/**/${suffixes[mode] ?? suffixes.test}`,
    ],
    exclude: ['**/node_modules/**', '**/dist/**', ...(mode === 'long' ? [] : ['**/*.long.test.ts'])],
    // More workers than processors, because many tests wait. Vitest would reduce a percentage to the
    // number of processors.
    maxWorkers: availableParallelism() + 2,
    // The conformance rules run concurrently, and many of them wait.
    maxConcurrency: 20,
    sequence: { sequencer: LongestFirst },
    // All files of a worker share its loaded modules, so each file starts faster.
    isolate: false,
    setupFiles: ['test/support/setup.ts'],
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: timeouts[mode] ?? timeouts.test,
    // Conditions take longer to become true on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 180_000,
    teardownTimeout: 20_000,
    disableConsoleIntercept: mode === 'run',
  },
}))
