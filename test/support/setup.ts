import { Agent, setGlobalDispatcher } from 'undici'
import { afterAll, inject } from 'vitest'
import { cleanUp } from './clean-up.ts'
import { keepOutputIn, stopStarted } from './processes.ts'

// Vitest runs this file before each test file.
keepOutputIn(inject('processOutput'))
// Otherwise `fetch` keeps a connection for almost as long as the server does. In a busy process its timer is late.
// Then the next request uses a connection that the server closes, and fails with ECONNRESET.
setGlobalDispatcher(new Agent({ keepAliveMaxTimeout: 4_000 }))
afterAll(() => cleanUp().finally(stopStarted))
