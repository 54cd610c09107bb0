import { clientSuite } from './client-suite.ts'
import { createSuiteContext } from './suite-context.ts'

/**
 * Script of the test page: `runScenario(name, serverUrl)` runs one test with the page's own fetch,
 * locks and channels.
 */
Object.assign(globalThis, {
  async runScenario(name: string, serverUrl: string): Promise<'done'> {
    const context = createSuiteContext({ serverUrl, fetch: (...request) => fetch(...request) })
    try {
      await context.reset()
      await clientSuite[name]!(context)
      return 'done'
    } finally {
      context.close()
    }
  },
})
