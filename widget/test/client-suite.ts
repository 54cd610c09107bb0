import { identitySuite } from './identity-suite.ts'
import { sendingSuite } from './sending-suite.ts'
import { sessionSuite } from './session-suite.ts'
import type { SuiteContext } from './suite-context.ts'
import { tabSuite } from './tab-suite.ts'

/**
 * Tests of the headless client that run in Node and in Chromium. Each test gets its own
 * `SuiteContext`, with a scenario server and simulated tabs.
 */
export const clientSuite: Record<string, (context: SuiteContext) => Promise<void>> = {
  ...tabSuite,
  ...sendingSuite,
  ...sessionSuite,
  ...identitySuite,
}
