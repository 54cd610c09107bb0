import { afterAll } from 'vitest'
import { stopStarted } from './spawned-process.ts'

export {
  freePort,
  inheritedEnvironment,
  type ProcessSpec,
  type StartedProcess,
  startProcess,
} from './spawned-process.ts'

// Whatever still runs at the end of the test file is stopped then.
afterAll(stopStarted)
