import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { longTests, testedFolders } from './test/support/long-tests.ts'
import { SlowTests } from './test/support/slow-tests.ts'

/** Returns the files that a mode runs, for example `vitest run --mode long`. */
function filesOf(mode: string): string[] {
  // `npm run test:long`: tests that kill processes, repeat runs or use large sizes.
  if (mode === 'long') return longTests(import.meta.dirname)
  // Tests that take options and print results: `npm run chaos -- delivery`, `npm run verify -- packages`.
  if (mode === 'run') return [`${testedFolders}/**/*.run.ts`]
  // `npm test`: the regular tests. They take minutes.
  return [`${testedFolders}/**/!(*.long).test.ts`]
}

/** The slowest test files, and folders of them. They start first, so that none runs alone at the end. */
const longest = [
  'test/conformance/',
  'test/authorization/',
  'core/privacy/',
  'test/upgrade/',
  'test/cluster/',
  'test/chaos/',
  'test/browser/',
  'test/end-to-end/',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const rank = ({ moduleId }: TestSpecification) => {
      const found = longest.findIndex((folder) => moduleId.includes(`/${folder}`))
      return found < 0 ? longest.length : found
    }
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}

/** Returns the time limit of one test in milliseconds. */
const timeoutOf = (mode: string) => (mode === 'long' ? 900_000 : mode === 'run' ? 3_600_000 : 120_000)

export default defineConfig(({ mode }) => ({
  test: {
    include: filesOf(mode),
    exclude: ['**/node_modules/**', '**/dist/**'],
    // One worker more than processors, because many tests wait. Not for long tests: they start many processes, and
    // some would exceed their time limits.
    maxWorkers: availableParallelism() + (mode === 'long' ? 0 : 1),
    // The conformance rules run concurrently, and many of them wait.
    maxConcurrency: 20,
    sequence: { sequencer: LongestFirst },
    // All files of a worker share its loaded modules, so each file starts faster.
    isolate: false,
    reporters: ['default', ...(mode === 'test' ? [new SlowTests()] : [])],
    setupFiles: ['test/support/setup.ts'],
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: timeoutOf(mode),
    // Conditions take longer to become true on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 180_000,
    teardownTimeout: 20_000,
    disableConsoleIntercept: mode === 'run',
  },
}))
