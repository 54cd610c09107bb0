import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{core,gateway,delivery,widget,test,scripts}/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
