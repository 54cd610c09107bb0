import { clientSuite } from './client-suite.ts'
import { createSuiteWorld } from './suite-world.ts'

/** The suite in a page: `runScenario(name, serverUrl)` plays one of its scenarios with the page's own fetch, locks and channels. */
Object.assign(globalThis, {
  async runScenario(name: string, serverUrl: string): Promise<'done'> {
    const world = createSuiteWorld({ serverUrl, fetch: (...request) => fetch(...request) })
    try {
      await world.reset()
      await clientSuite[name]!(world)
      return 'done'
    } finally {
      world.close()
    }
  },
})
