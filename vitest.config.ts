import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{core,gateway,delivery,destination,widget,console,test,scripts}/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    globalSetup: ['test/support/engine-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
})
