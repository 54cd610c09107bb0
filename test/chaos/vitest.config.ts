import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** Runs that take minutes and print results. Each file has its own npm script. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/chaos/*.chaos.ts'],
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    disableConsoleIntercept: true,
  },
})
