import { beforeAll } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { isOfRoom, quickRules, responseRules, waitingRules } from './all-rules.ts'
import { choose } from './rule.ts'
import { type LocalSuite, startSuite } from './suite.ts'

const databases = [testDatabase(), testDatabase()] as const
let started: LocalSuite

beforeAll(async () => {
  started = await startSuite([databases[0], databases[1]])
})

waitingRules(() => started, databases[0])
choose(isOfRoom, () => quickRules(() => started, databases[0]))
responseRules(() => started, 1)
