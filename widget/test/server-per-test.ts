import { afterEach, beforeEach } from 'vitest'
import { latest } from '../../test/support/latest.ts'
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'

/** Starts a scenario server with a manual clock before each test of a file. */
export function serverPerTest(config?: Record<string, unknown>) {
  let started: ScenarioServer
  let made: ManualClock
  const start = async (config?: Record<string, unknown>, now = made.now) => {
    started = await startScenarioServer({ now, config })
  }
  beforeEach(() => {
    made = createManualClock()
    return start(config)
  })
  afterEach(() => started.close())
  return {
    clock: latest(() => made),
    server: latest(() => started),
    /** Replaces the server with one that has another configuration. */
    async restart(...given: Parameters<typeof start>) {
      await started.close()
      await start(...given)
    },
  }
}
