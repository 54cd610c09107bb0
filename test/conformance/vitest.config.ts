import { defineConfig } from 'vitest/config'

// Configuration of `npm run conformance`. It starts no engine.
export default defineConfig({
  test: {
    include: ['test/conformance/deployment.run.ts'],
    // A test waits while a rate limit refuses its sessions.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 10_000 } },
    disableConsoleIntercept: true,
  },
})
