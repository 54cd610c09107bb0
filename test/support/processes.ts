import { afterAll, inject } from 'vitest'
import { keepOutputIn, stopStarted } from './spawned-process.ts'

export {
  freePort,
  inheritedEnvironment,
  type ProcessSpec,
  type StartedProcess,
  startProcess,
} from './spawned-process.ts'

keepOutputIn(inject('processOutput'))
// Whatever still runs at the end of the test file is stopped then.
afterAll(stopStarted)
