import { afterAll, inject } from 'vitest'
import { cleanUp } from './clean-up.ts'
import { keepOutputIn, stopStarted } from './processes.ts'

// Vitest runs this file before each test file.
keepOutputIn(inject('processOutput'))
afterAll(() => cleanUp().finally(stopStarted))
