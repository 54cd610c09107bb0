import { expect, it } from 'vitest'
import { createDatabaseCheck, requireMatchingClock } from './database-check.ts'

const now = () => 1_000_000
const withClockAt = (time: number) => ({ ping: async () => time })

/** Runs the job once. Returns what it has measured and logged. */
async function check(database: { ping(): Promise<number> }) {
  const measured: Record<string, number> = {}
  const logged: unknown[] = []
  const gauge = (name: string) => ({ set: (value: number) => (measured[name] = value) }) as never
  const log = (...entry: unknown[]) => void logged.push(entry.at(-1))
  await createDatabaseCheck({
    database,
    metrics: { databaseUp: gauge('up'), clockOffset: gauge('offset') },
    logger: { warn: log, info: log } as never,
    now,
  })()
  return { measured, logged }
}

it('measures by how many seconds the clock is ahead of the database, and warns above two seconds', async () => {
  expect(await check(withClockAt(now() - 1_500))).toEqual({ measured: { up: 1, offset: 1.5 }, logged: [] })
  const { measured, logged } = await check(withClockAt(now() + 2_500))
  expect(measured).toEqual({ up: 1, offset: -2.5 })
  expect(logged).toEqual([expect.stringContaining('clock')])
})

it('reports a database that does not answer', async () => {
  const away = { ping: () => Promise.reject(new Error('connection refused')) }
  expect((await check(away)).measured.up).toBe(0)
})

it('refuses a start with a clock that is more than ten seconds off, and none without an answer', async () => {
  for (const offset of [-10_001, 10_001])
    await expect(requireMatchingClock(withClockAt(now() + offset), now)).rejects.toThrow('set it (NTP)')
  await requireMatchingClock(withClockAt(now() + 10_000), now)
  await requireMatchingClock({ ping: () => Promise.reject(new Error('no answer')) }, now)
})
