import { createRequire } from 'node:module'
import { expect, it, vi } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { createMongoClient } from './client-options.ts'

const pause = { minPoolSizeCheckFrequencyMS: 6_000 }
const timers = createRequire(import.meta.url)('node:timers') as typeof import('node:timers')

it('a client looks at its pool of connections a few times a minute, unless its URI asks for a filled pool', async () => {
  const { uri } = testDatabase()
  const started = vi.spyOn(timers, 'setTimeout')
  await using client = createMongoClient(uri, { timeoutMs: 10_000 })
  await client.connect()
  // Clients of other tests in this process start such timers too, but without the longer pause.
  const pauses = () => started.mock.calls.flatMap(([run, ms]) => (`${run}`.includes('ensureMinPoolSize') ? [ms] : []))
  await expect.poll(pauses).toContain(6_000)
  expect(createMongoClient(`${uri}&minPoolSize=1`, { timeoutMs: 1 }).options).not.toMatchObject(pause)
  expect(client.options).toMatchObject(pause)
  started.mockRestore()
})
