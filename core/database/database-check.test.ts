import { expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { bareCore } from '../test/core-with.ts'
import { databaseCheckOf, hasKnownHoles, requireMatchingClock } from './database-check.ts'

const now = () => 1_000_000
const withClockAt = (time: number) => ({ ping: async () => time, hasServer: () => true })

function watch(database: { ping(): Promise<number>; hasServer(): boolean }) {
  const measured: Record<string, number> = {}
  const logged: unknown[] = []
  const gauge = (name: string) => ({ set: (value: number) => (measured[name] = value) }) as never
  const log = (...entry: unknown[]) => void logged.push(entry.at(-1))
  const metrics = { databaseUp: gauge('up'), databasePing: gauge('ping'), clockOffset: gauge('offset') }
  const watched = databaseCheckOf(bareCore({ database, metrics, logger: { warn: log, info: log }, now }))
  return { ...watched, measured, logged }
}

it('measures by how many seconds the clock is ahead of the database, and warns above two seconds', async () => {
  const near = watch(withClockAt(now() - 1_500))
  await near.check()
  expect(near.measured).toMatchObject({ up: 1, offset: 1.5 })
  expect(near.logged).toEqual([])
  const far = watch(withClockAt(now() + 2_500))
  await far.check()
  expect(far.measured).toMatchObject({ up: 1, offset: -2.5 })
  expect(far.logged).toEqual([expect.stringContaining('clock')])
})

it('a database whose ping fails is away until a ping succeeds', async () => {
  let fails = true
  const database = { ping: () => (fails ? Promise.reject(new Error('refused')) : Promise.resolve(now())) }
  const { isAway, measured, logged } = watch({ ...database, hasServer: () => true })
  expect(await isAway()).toBe(true)
  expect(measured.up).toBe(0)
  fails = false
  expect(await isAway()).toBe(false)
  expect(measured.up).toBe(1)
  expect(logged).toEqual([expect.stringContaining('does not answer'), expect.stringContaining('answers again')])
})

it('a database that has not answered yet is slow, not away, and its ping is measured', async () => {
  const answer = Promise.withResolvers<number>()
  let pings = 0
  const ping = () => {
    pings += 1
    return answer.promise
  }
  const { isAway, measured, logged } = watch({ ping, hasServer: () => true })
  expect(await Promise.all([isAway(), isAway()])).toEqual([false, false])
  expect([measured.up, pings]).toEqual([1, 1])
  expect(measured.ping).toBeGreaterThanOrEqual(0.85)
  expect(logged).toEqual([expect.stringContaining('slowly')])
  answer.reject(new Error('timed out'))
  await until('the failed ping', () => measured.up === 0)
})

it('a database without an answer and without a known primary is away', async () => {
  const { isAway, measured } = watch({ ping: () => new Promise(() => {}), hasServer: () => false })
  expect(await isAway()).toBe(true)
  expect(measured.up).toBe(0)
})

it('refuses a start with a clock that is more than ten seconds off, and none without an answer', async () => {
  for (const offset of [-10_001, 10_001])
    await expect(requireMatchingClock(withClockAt(now() + offset), now)).rejects.toThrow('set it (NTP)')
  await requireMatchingClock(withClockAt(now() + 10_000), now)
  await requireMatchingClock({ ping: () => Promise.reject(new Error('no answer')) }, now)
})

it.each([
  ['6.0.27', true],
  ['7.0.31', true],
  ['7.0.32', false],
  ['7.3.4', true],
  ['8.0.20', true],
  ['8.0.21', false],
  ['8.0.21-rc0', false],
  ['8.2.2', true],
  ['8.2.3', false],
  ['9.0.0-alpha0', false],
])('MongoDB %s has known holes: %s', (version, holes) => {
  expect(hasKnownHoles(version)).toBe(holes)
})
