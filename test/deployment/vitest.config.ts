import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** Tests that install and build, which takes minutes: `npm test -- --config test/deployment/vitest.config.ts`. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/deployment/*.long.ts'],
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
})
