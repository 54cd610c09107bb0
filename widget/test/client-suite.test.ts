import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { fetchFromPage } from './client-harness.ts'
import { clientSuite } from './client-suite.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'
import { createSuiteWorld, type SuiteWorld } from './suite-world.ts'

let server: ScenarioServer
let world: SuiteWorld
beforeAll(async () => {
  server = await startScenarioServer()
})
afterEach(() => world.close())
afterAll(() => server.close())

describe('the headless client, in Node', () => {
  it.each(Object.entries(clientSuite))('%s', async (_, run) => {
    world = createSuiteWorld({ serverUrl: server.url, fetch: fetchFromPage })
    await world.reset()
    await run(world)
  })

  it('fails if an assertion is never reached', async () => {
    world = createSuiteWorld({ serverUrl: server.url, fetch: fetchFromPage })
    await world.reset()
    const tab = world.tab()
    await tab.online()
    await expect(world.streams()).resolves.toBe(1)
    await expect(world.stored()).resolves.toEqual([[]])
  })
})
