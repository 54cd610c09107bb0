import { beforeAll, describe } from 'vitest'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { interleavingRules } from './interleavings.ts'
import { roomyOptions, type StackWithClients, withClients } from './suite.ts'

const database = testDatabase()
let roomy: StackWithClients
beforeAll(async () => {
  roomy = await withClients(await startStack({ database, ...roomyOptions }))
})

describe('many interleavings of calls', () => interleavingRules(() => ({ roomy }), { races: 50, runs: 200 }))
