import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** The long form: minutes, and a seed of its own. `npm run fuzz` runs it. */
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
