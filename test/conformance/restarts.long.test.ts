import { beforeAll, describe } from 'vitest'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { restartRules } from './restarts.ts'
import { roomyOptions, type StackWithClients, withClients } from './suite.ts'

const database = testDatabase()
let roomy: StackWithClients<Stack>
beforeAll(async () => {
  roomy = await withClients(await startStack({ database, ...roomyOptions }))
})

describe('processes that are killed', () =>
  restartRules(() => {
    const { cores, gateways } = roomy.stack
    return {
      ...roomy,
      endCores: () => Promise.all(cores.map((core) => core.kill())),
      restart: () => Promise.all([cores[0]!.start(), gateways[0]!.killAndRestart()]),
    }
  }))
