import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { fetchFromPage } from './client-harness.ts'
import { clientSuite } from './client-suite.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'
import { createSuiteContext, type SuiteContext } from './suite-context.ts'

let server: ScenarioServer
let context: SuiteContext
beforeAll(async () => {
  server = await startScenarioServer()
})
afterEach(() => context.close())
afterAll(() => server.close())

describe('the headless client, in Node', () => {
  it.each(Object.entries(clientSuite))('%s', async (_, run) => {
    context = createSuiteContext({ serverUrl: server.url, fetch: fetchFromPage })
    await context.reset()
    await run(context)
  })

  it('the scenario server returns the number of open streams and the stored messages (check of the test itself)', async () => {
    context = createSuiteContext({ serverUrl: server.url, fetch: fetchFromPage })
    await context.reset()
    const tab = context.tab()
    await tab.online()
    await expect(context.streams()).resolves.toBe(1)
    await expect(context.stored()).resolves.toEqual([[]])
  })
})
