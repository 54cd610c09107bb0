import { beforeAll, describe } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { quickRules, responseRules, waitingRules } from './all-rules.ts'
import { countOnly, everyRuleIsTested } from './rule.ts'
import { type LocalSuite, startSuite } from './suite.ts'

const databases = [testDatabase(), testDatabase()] as const
let started: LocalSuite

beforeAll(async () => {
  started = await startSuite([databases[0], databases[1]])
})

quickRules(
  () => started,
  databases[0],
  () => {
    const { roomy } = started
    const { cores, gateways } = roomy.stack
    return {
      ...roomy,
      endCores: () => Promise.all(cores.map((core) => core.stop())),
      async restart() {
        await gateways[0]!.stop()
        await Promise.all([cores[0]!.start(), gateways[0]!.start()])
      },
    }
  },
)

responseRules(() => started, 14)
// waiting-rules.long.test.ts runs the tests of these rules, which wait for time to pass.
countOnly(() => waitingRules(() => started, databases[0]))

describe('the list in rules.ts', () => everyRuleIsTested())
