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
// Stops all running processes at the end of the test file.
afterAll(stopStarted)
