import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{core,core-client,gateway,delivery,platform,widget,console,test,dev,admin}/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    // Much of what runs here waits for processes and pages.
    maxWorkers: '100%',
    globalSetup: ['test/support/process-output.ts', 'test/support/engine-setup.ts'],
    testTimeout: 120_000,
    // A condition is waited for as long as a busy machine may need.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 180_000,
    teardownTimeout: 20_000,
  },
})
