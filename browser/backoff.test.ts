import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffDelay } from './pause.ts'

const range = { minMs: 500, maxMs: 20_000 }

it('the backoff delay is between minMs and maxMs for every attempt', () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, chance) => {
      const delay = backoffDelay(attempt, range, () => chance)
      expect(delay).toBeGreaterThanOrEqual(500)
      expect(delay).toBeLessThanOrEqual(20_000)
    }),
  )
})

it('the first backoff delay is random, and the maximum delay grows with each attempt', () => {
  const spread = (attempt: number) => backoffDelay(attempt, range, () => 0.999) - backoffDelay(attempt, range, () => 0)
  expect(spread(0)).toBeGreaterThan(400)
  expect(spread(3)).toBeGreaterThan(spread(2))
})
