import { existsSync, readdirSync, rmSync } from 'node:fs'
import { expect, it } from 'vitest'
import { localFaults, simulatedFaults } from './faults.ts'
import type { Entry } from './history.ts'
import { runChaos, runWith } from './run.ts'
import { startSimulatedSet } from './simulated-set.ts'

it('a short chaos run with all faults finds no violation', async () => {
  const lines: string[] = []
  const say = (line: string) => void lines.push(line)
  const report = await runChaos({ seed: 1, seconds: 12, visitors: 6, faults: localFaults, say })
  expect(report.violations, lines.join('\n')).toEqual([])
  expect(report.operations).toBeGreaterThan(50)
  expect(report.folder).toBeUndefined()
})

/**
 * What the runs must have observed. A rule about something that never happens could not fail. On a busy machine, one
 * run is too short for all of it.
 */
const observed: Entry['kind'][] = [
  'acknowledged',
  'event',
  'history',
  'reload',
  'revoked',
  'delivery',
  'claim lost',
  'late result',
  'feed event',
  'withdrawn',
  'text received',
  'answer',
]

it('short chaos runs over a simulated replica set find no violation', async () => {
  const missing = new Set(observed)
  for (let seed = 1; seed <= 3 && missing.size > 0; seed += 1) {
    const { stop, ...set } = await startSimulatedSet()
    const lines: string[] = []
    const say = (line: string) => void lines.push(line)
    const report = await runChaos({ seed, seconds: 40, visitors: 6, faults: simulatedFaults, say, ...set })
    await stop()
    expect(report.violations, lines.join('\n')).toEqual([])
    expect(report.operations).toBeGreaterThan(50)
    for (const kind of observed) if (report.observations[kind]) missing.delete(kind)
  }
  expect([...missing]).toEqual([])
})

it('a chaos run whose engine never comes back ends with a report and keeps its folder', async () => {
  const options = { seed: 1, arrivalSeconds: 1, visitors: 2, say: () => {} }
  const report = await runWith(options, async ({ engine }) => {
    engine.signal('SIGSTOP')
    throw new Error('a fault that failed')
  })
  const whats = report.violations.map(({ rule, what }) => `${rule}: ${what}`).join('\n')
  expect(whats).toMatch(/recovered: the faults failed: Error: a fault that failed/)
  expect(whats).toMatch(/recovered: the read of the database failed: Mongo/)
  const folder = report.folder ?? ''
  expect(existsSync(folder)).toBe(true)
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(['engine.log', 'core 1.log', 'copy of mongodb']))
  rmSync(folder, { recursive: true })
})
