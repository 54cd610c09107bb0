import { beforeAll, describe } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { responseRules, waitingRules } from './all-rules.ts'
import { type LocalSuite, startSuite } from './suite.ts'

const databases = [testDatabase(), testDatabase()] as const
let started: LocalSuite

beforeAll(async () => {
  started = await startSuite([databases[0], databases[1]])
})

describe('interleavings, lifetimes and deliveries', () => waitingRules(() => started, databases[0]))
responseRules(() => started, 1)
