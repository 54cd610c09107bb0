import { createRequire } from 'node:module'
import { expect, it, vi } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { createMongoClient } from './client-options.ts'

const timers = createRequire(import.meta.url)('node:timers') as typeof import('node:timers')

it('a client looks at its pool of connections a few times a minute, unless its URI asks for a filled pool', async () => {
  const { uri } = testDatabase()
  const started = vi.spyOn(timers, 'setTimeout')
  const pausesOf = async (uri: string) => {
    started.mockClear()
    await using client = createMongoClient(uri, { timeoutMs: 10_000 })
    await client.connect()
    const pauses = () => started.mock.calls.flatMap(([run, ms]) => (`${run}`.includes('ensureMinPoolSize') ? [ms] : []))
    await expect.poll(pauses).not.toEqual([])
    return new Set(pauses())
  }
  expect(await pausesOf(uri)).toEqual(new Set([6_000]))
  expect(await pausesOf(`${uri}&minPoolSize=1`)).toEqual(new Set([100]))
  started.mockRestore()
})
