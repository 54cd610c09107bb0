import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: (process.env.MUTATION_TESTS ?? '').split(',').filter(Boolean),
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
