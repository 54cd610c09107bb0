import { afterEach, beforeEach } from 'vitest'
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'

/** Starts a scenario server with a manual clock before each test of a file. */
export function serverPerTest() {
  const fixture = {
    clock: undefined as unknown as ManualClock,
    server: undefined as unknown as ScenarioServer,
    /** Replaces the server with one that has another configuration. */
    async restart(config: Record<string, unknown>) {
      await fixture.server.close()
      fixture.server = await startScenarioServer({ now: fixture.clock.now, config })
    },
  }
  beforeEach(async () => {
    fixture.clock = createManualClock()
    fixture.server = await startScenarioServer({ now: fixture.clock.now })
  })
  afterEach(() => fixture.server.close())
  return fixture
}
