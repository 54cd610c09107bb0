import { beforeAll, describe } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { interleavingRules } from './interleavings.ts'
import { type StackWithClients, startRoomy } from './suite.ts'

const database = testDatabase()
let roomy: StackWithClients
beforeAll(async () => {
  roomy = await startRoomy(database)
})

describe('many interleavings of calls', () => interleavingRules(() => ({ roomy }), { races: 50, runs: 200 }))
