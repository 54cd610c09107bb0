import { expect, it } from 'vitest'
import { memoryOf } from '../support/memory.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { fuzzConfig } from './config.ts'
import { fuzz } from './fuzz.ts'

const database = testDatabase()
const { FUZZ_SEED: seed, FUZZ_MINUTES: minutes } = fuzzConfig()
/**
 * Allowed memory growth, including memory that is not yet garbage-collected. A leak in every
 * request would exceed this growth within minutes.
 */
const maxGrowthMiB = 200

it(`the service gives only allowed responses to hostile input for ${minutes} minutes, seed ${seed}`, async () => {
  const stack = await startStack({ database, env: { RATE_LIMIT_FACTOR: '100000', LOG_LEVEL: 'warn' } })
  const endsAt = Date.now() + minutes * 60_000
  let baseline: Record<string, number> = {}
  let loggedAt = 0
  const report = await fuzz({
    stack,
    seed,
    casesEach: 20,
    async shouldContinue(round) {
      if (round === 5) baseline = await memoryOf(stack)
      if (Date.now() - loggedAt > 30_000) {
        loggedAt = Date.now()
        console.log(`round ${round}, MiB ${JSON.stringify(await memoryOf(stack))}`)
      }
      return Date.now() < endsAt
    },
  })
  const { findings, ...counts } = report
  console.log(
    JSON.stringify(
      { seed, ...counts, findings: findings.length, memoryMiB: { baseline, end: await memoryOf(stack) } },
      null,
      2,
    ),
  )
  expect(findings.slice(0, 50)).toEqual([])
  const end = await memoryOf(stack)
  for (const [name, before] of Object.entries(baseline)) expect(end[name]! - before, name).toBeLessThan(maxGrowthMiB)
})
