import { defineConfig } from 'vitest/config'
import { testsToRun } from './config.ts'

export default defineConfig({
  test: {
    include: testsToRun(),
    // `itLong` skips only if the mode is `test`.
    env: { MODE: 'mutation' },
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    // The timeout is short, so that a mutant whose promise never settles fails its test before
    // Stryker stops the process.
    testTimeout: 5_000,
    hookTimeout: 60_000,
  },
})
