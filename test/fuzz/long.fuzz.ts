import { expect, it } from 'vitest'
import { memoryOf } from '../support/memory.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { fuzzConfig } from './config.ts'
import { fuzz } from './fuzz.ts'

const database = testDatabase()
const { FUZZ_SEED: seed, FUZZ_MINUTES: minutes } = fuzzConfig()
/** Node's collector takes its time; what leaks on each case is far beyond this after some minutes. */
const growthMaxMiB = 200

it(`hostile input for ${minutes} minutes, seed ${seed}`, async () => {
  const stack = await startStack({ database, env: { RATE_LIMIT_FACTOR: '100000', LOG_LEVEL: 'warn' } })
  const ends = Date.now() + minutes * 60_000
  let warm: Record<string, number> = {}
  let saidAt = 0
  const report = await fuzz({
    stack,
    seed,
    casesEach: 20,
    async goesOn(round) {
      if (round === 5) warm = await memoryOf(stack)
      if (Date.now() - saidAt > 30_000) {
        saidAt = Date.now()
        console.log(`round ${round}, MiB ${JSON.stringify(await memoryOf(stack))}`)
      }
      return Date.now() < ends
    },
  })
  const { findings, ...counts } = report
  console.log(
    JSON.stringify(
      { seed, ...counts, findings: findings.length, memoryMiB: { warm, end: await memoryOf(stack) } },
      null,
      2,
    ),
  )
  expect(findings.slice(0, 50)).toEqual([])
  const end = await memoryOf(stack)
  for (const [name, before] of Object.entries(warm)) expect(end[name]! - before, name).toBeLessThan(growthMaxMiB)
})
