import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffDelay } from './backoff.ts'

const range = { minMs: 500, maxMs: 20_000 }

it('never waits less than the minimum nor more than the maximum', () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, chance) => {
      const delay = backoffDelay(attempt, range, () => chance)
      expect(delay).toBeGreaterThanOrEqual(500)
      expect(delay).toBeLessThanOrEqual(20_000)
    }),
  )
})

it('spreads even the first retry, and widens with each one', () => {
  const spread = (attempt: number) => backoffDelay(attempt, range, () => 0.999) - backoffDelay(attempt, range, () => 0)
  expect(spread(0)).toBeGreaterThan(400)
  expect(spread(3)).toBeGreaterThan(spread(2))
})
