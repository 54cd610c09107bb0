import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { forAll } from '../test/support/for-all.ts'
import { createManualClock } from '../test/support/manual-clock.ts'
import { backoffDelay, createPause } from './pause.ts'

it('hurry() ends a wait early, but not before the minimum time of the wait', async () => {
  const clock = createManualClock()
  const pause = createPause(clock)
  const done = vi.fn()
  void pause.wait(10_000, 4_000).then(done)
  pause.hurry()
  clock.advance(3_999)
  await Promise.resolve()
  expect(done).not.toHaveBeenCalled()
  clock.advance(1)
  await Promise.resolve()
  expect(done).toHaveBeenCalledOnce()
  expect(pause.isWaiting()).toBe(false)
})

it('end() ends a wait at once, even before the minimum time of the wait', async () => {
  const clock = createManualClock()
  const pause = createPause(clock)
  const waiting = pause.wait(10_000, 10_000)
  pause.end()
  await waiting
  expect(clock.nextIn()).toBeUndefined()
})

const range = { minMs: 500, maxMs: 20_000 }

it('the backoff delay is between minMs and maxMs for every attempt', () => {
  forAll([fc.nat(10_000), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })], {}, (attempt, chance) => {
    const delay = backoffDelay(attempt, range, () => chance)
    expect(delay).toBeGreaterThanOrEqual(500)
    expect(delay).toBeLessThanOrEqual(20_000)
  })
})

it('the first backoff delay is random, and the maximum delay grows with each attempt', () => {
  const spread = (attempt: number) => backoffDelay(attempt, range, () => 0.999) - backoffDelay(attempt, range, () => 0)
  expect(spread(0)).toBeGreaterThan(400)
  expect(spread(3)).toBeGreaterThan(spread(2))
})
