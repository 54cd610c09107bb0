import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** The long fuzz run of `npm run fuzz`. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/fuzz/long.fuzz.ts'],
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: 86_400_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    disableConsoleIntercept: true,
  },
})
