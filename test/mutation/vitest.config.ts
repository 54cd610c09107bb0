import { defineConfig } from 'vitest/config'
import { testsToRun } from './config.ts'

export default defineConfig({
  test: {
    include: testsToRun(),
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
