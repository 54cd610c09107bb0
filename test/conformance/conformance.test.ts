import { beforeAll, describe } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { isOfRoom, quickRules, responseRules, waitingRules } from './all-rules.ts'
import { missing } from './missing-access.ts'
import { restartRules } from './restarts.ts'
import { choose, everyRuleIsTested } from './rule.ts'
import { type LocalSuite, startSuite } from './suite.ts'

const databases = [testDatabase(), testDatabase()] as const
let started: LocalSuite

beforeAll(async () => {
  started = await startSuite([databases[0], databases[1]])
})

choose(
  (id) => !isOfRoom(id),
  () => quickRules(() => started, databases[0]),
)
responseRules(() => started, 14)
// Other files run these tests: waiting-rules.long.test.ts and restarts.long.test.ts.
choose(
  () => false,
  () => {
    waitingRules(() => started, databases[0])
    restartRules(() => missing('a restart'))
  },
)

describe('the list in rules.ts', () => everyRuleIsTested())
